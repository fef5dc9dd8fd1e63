//go:build unix

package sshtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Key is a key pair in files, as ssh-keygen makes them.
type Key struct {
	// File is the private key's path; the public key lies beside it in File + ".pub".
	File string
	// Public is the line for authorized_keys, without comment, and Fingerprint its "SHA256:…".
	Public      string
	Fingerprint string
}

// KeyOptions say what key to make. The zero value is an ed25519 key without passphrase.
type KeyOptions struct {
	Type       string // as for ssh-keygen -t
	Bits       int
	Passphrase string
	Arguments  []string // further ones for ssh-keygen, such as "-m", "PEM"
}

// NewKey makes a key.
func NewKey(t testing.TB, options KeyOptions) Key {
	t.Helper()
	if options.Type == "" {
		options.Type = "ed25519"
	}
	file := filepath.Join(folder(t), "id_"+options.Type)
	arguments := []string{"-q", "-t", options.Type, "-N", options.Passphrase, "-C", "", "-f", file}
	if options.Bits != 0 {
		arguments = append(arguments, "-b", strconv.Itoa(options.Bits))
	}
	run(t, nil, "ssh-keygen", append(arguments, options.Arguments...)...)
	return ReadKey(t, file)
}

// ReadKey describes a key in files.
func ReadKey(t testing.TB, file string) Key {
	t.Helper()
	public, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(run(t, nil, "ssh-keygen", "-l", "-f", file+".pub"))
	return Key{File: file, Public: strings.TrimSpace(string(public)), Fingerprint: fields[1]}
}

// Content is the private key itself.
func (k Key) Content(t testing.TB) string {
	t.Helper()
	content, err := os.ReadFile(k.File)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// CertificateOptions say what a certificate grants.
type CertificateOptions struct {
	// Host makes a host certificate instead of a user's.
	Host bool
	// Principals are the host names or users; empty means all.
	Principals []string
	// Validity is as for ssh-keygen -V, such as "-2h:-1h"; empty means for ever.
	Validity string
	// Options are as for ssh-keygen -O, such as "force-command=true".
	Options []string
}

// Certify signs a key with an authority's and returns the certificate's path, "<key file>-cert.pub", where
// ssh finds it by itself.
func (k Key) Certify(t testing.TB, authority Key, options CertificateOptions) string {
	t.Helper()
	arguments := []string{"-q", "-s", authority.File, "-I", "test"}
	if options.Host {
		arguments = append(arguments, "-h")
	}
	if len(options.Principals) > 0 {
		arguments = append(arguments, "-n", strings.Join(options.Principals, ","))
	}
	if options.Validity != "" {
		arguments = append(arguments, "-V", options.Validity)
	}
	for _, option := range options.Options {
		arguments = append(arguments, "-O", option)
	}
	run(t, nil, "ssh-keygen", append(arguments, k.File+".pub")...)
	return k.File + "-cert.pub"
}

// Agent runs an ssh-agent that holds the keys, until the test ends, and returns its socket.
func Agent(t testing.TB, keys ...Key) string {
	t.Helper()
	socket := filepath.Join(folder(t), "agent")
	daemon := exec.Command(find(t, "ssh-agent"), "-D", "-a", socket) //nolint:noctx,gosec // killed below; the arguments are ours
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	})
	for deadline := time.Now().Add(startPatience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("ssh-agent makes no socket")
		}
	}
	for _, key := range keys {
		run(t, []string{"SSH_AUTH_SOCK=" + socket}, "ssh-add", "-q", key.File)
	}
	return socket
}

// run runs a program of OpenSSH to its end and returns what it printed.
func run(t testing.TB, environment []string, program string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, find(t, program), arguments...) //nolint:gosec // the arguments are a test's
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, output)
	}
	return string(output)
}
