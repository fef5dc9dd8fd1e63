package client

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestBrokenProgram: after a crash of the node the program's file may be empty, which a shell runs as
// a script without a word, or hold anything.
func TestBrokenProgram(t *testing.T) {
	const restricted = "empty, in a restricted shell"
	for name, content := range map[string]string{
		"empty": "", "not a program": "\x7fELF\x00\x00", "another program": "#!/bin/sh\nexit 3\n", "zeros": strings.Repeat("\x00", 4096),
		restricted: "",
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "sh")
			want := 4 // the start, its careful repetition, the upload, the start
			if name == restricted {
				n.login(`exec /bin/bash --restricted "$@"`)
				want = 5
			}
			folder := filepath.Join(n.home, ".cache/spark-stack")
			installed := n.install(folder)
			must(t, os.WriteFile(installed, []byte(content), 0o700)) //nolint:gosec // It must be runnable.
			n.commands = 0
			n.install(folder)
			if n.commands != want {
				t.Errorf("%d commands", n.commands)
			}
		})
	}
}

// TestOddLogins are login shells whose start files or settings are in the way.
func TestOddLogins(t *testing.T) {
	for name, login := range map[string]string{
		"babbles on both streams":     `echo Welcome; echo "stty: standard input: Inappropriate ioctl" >&2; exec /bin/sh "$@"`,
		"stops at errors":             `exec /bin/sh -e "$@"`,
		"PATH leads nowhere":          `PATH=/nonexistent; export PATH; exec /bin/bash "$@"`,
		"no PATH":                     `unset PATH; exec /bin/dash "$@"`,
		"keeps files from overwrites": `exec /bin/bash -o noclobber "$@"`,
		"open umask":                  `umask 000; exec /bin/sh "$@"`,
		"closed umask":                `umask 077; exec /bin/sh "$@"`,
		"odd locale":                  `LC_ALL=xx_YY.UTF-8; LANG=tr_TR; export LC_ALL LANG; exec /bin/bash "$@"`,
		"aliases":                     `exec /bin/bash -O expand_aliases -c 'alias cat=bat find=fd ls=exa mv="mv -i" rm="rm -i" test=false; eval "$1"' bash "$2"`,
		"a restricted shell":          `exec /bin/bash --restricted "$@"`,
		"replaced by bash":            `exec /bin/bash`,
		"replaced by dash, noisily":   `echo starting; exec /bin/dash`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "sh")
			n.login(login)
			n.silence = 300 * time.Millisecond
			if !strings.HasPrefix(name, "replaced") {
				n.silence = time.Minute
			}
			folder := filepath.Join(n.home, ".cache/spark-stack")
			n.install(folder)
			if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the folder is %v, %v", info, err)
			}
		})
	}
}

// TestSilentLogin: a login shell that waits for something else is given up, and it is said.
func TestSilentLogin(t *testing.T) {
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, "sh")
	n.login("read answer; echo starting; exec sleep 60")
	n.silence = 200 * time.Millisecond
	options := n.options()
	options.patience = 500 * time.Millisecond
	_, err = start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), options)
	var failed *StartError
	if !errors.As(err, &failed) || failed.Kind != StartSilent || !strings.Contains(err.Error(), "neither answers nor ends within 200ms") || failed.Advice() == "" {
		t.Errorf("got %v", err)
	}
}

// TestProvidersAtOnce: several upload to one node at the same time, and each finds a whole program.
func TestProvidersAtOnce(t *testing.T) {
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			n := newNode(t, "sh")
			n.home = home
			helper, err := start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), n.options())
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := helper.Facts(t.Context()); err != nil {
				t.Error(err)
			}
			if err := helper.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	checkInstalled(t, filepath.Join(home, ".cache/spark-stack"), built.SHA256)
}
