//go:build unix

package sshtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// UserOptions say what account to make.
type UserOptions struct {
	// Shell is the login shell's path; empty means /bin/sh.
	Shell string
	// Locked locks the account, as "usermod -L" does.
	Locked bool
	// Files are put into the home folder, by name: ".bashrc", ".profile".
	Files map[string]string
}

var users atomic.Int32 // numbers the accounts of this process

// NewUser makes an account with a home folder until the test ends. It needs root.
func NewUser(t testing.TB, options UserOptions) (name, home string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("only root can make the account that this test needs")
	}
	if options.Shell == "" {
		options.Shell = "/bin/sh"
	}
	name = fmt.Sprintf("sshtest%d-%d", os.Getpid(), users.Add(1))
	home = filepath.Join(folder(t), "home")
	password := "*" // no password fits, but the account is open to keys
	if options.Locked {
		password = "!"
	}
	run(t, nil, "useradd", "--create-home", "--home-dir", home, "--shell", options.Shell, "--password", password, name)
	t.Cleanup(func() {
		if output, err := exec.Command(find(t, "userdel"), "--force", name).CombinedOutput(); err != nil { //nolint:noctx,gosec // a fixed program, quick
			t.Errorf("userdel: %v\n%s", err, output)
		}
	})
	for file, content := range options.Files {
		path := filepath.Join(home, file)
		write(t, path, content, 0o644)
		run(t, nil, "chown", name+":", path)
	}
	return name, home
}
