//go:build lab

package sshtest

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// login runs a command with the ssh client.
func login(t *testing.T, s *Server, key Key, user string, command ...string) (string, error) {
	t.Helper()
	arguments := []string{"-F", "none", "-i", key.File, "-p", strconv.Itoa(s.Port), "-o", "BatchMode=yes",
		"-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile=" + s.KnownHosts(t), user + "@" + s.Host}
	output, err := exec.CommandContext(t.Context(), find(t, "ssh"), append(arguments, command...)...).CombinedOutput()
	return string(output), err
}

func TestLabServer(t *testing.T) {
	key := NewKey(t, KeyOptions{})
	s := Start(t, Options{AuthorizedKeys: []string{key.Public}})
	if out, err := login(t, s, key, s.User, "echo", "here"); err != nil || strings.TrimSpace(out) != "here" {
		t.Fatalf("%v: %s\n%s", err, out, s.Log())
	}
	if !strings.Contains(s.Log(), "Accepted publickey") {
		t.Errorf("log: %s", s.Log())
	}
	// A process that left its session's tree ends with the server too.
	out, err := login(t, s, key, s.User, "setsid sleep 3579 >/dev/null 2>&1 </dev/null & echo $!")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if line, err := os.ReadFile("/proc/" + strings.TrimSpace(out) + "/cmdline"); err != nil || len(line) == 0 {
		t.Fatalf("nothing was started: %q, %v", out, err)
	}
	s.Stop()
	pid := strings.TrimSpace(out)
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		// One that nobody has collected yet has no command line any more.
		if line, err := os.ReadFile("/proc/" + pid + "/cmdline"); err != nil || len(line) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a process of the session lives on")
		}
	}
	if conn, err := net.Dial("tcp", s.Address()); err == nil { //nolint:noctx // loopback
		_ = conn.Close()
		t.Fatal("still listening")
	}
	s.Authorize(t)
	s.StartAgain(t)
	if out, err := login(t, s, key, s.User, "true"); err == nil || !strings.Contains(out, "Permission denied") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestLabCertificates(t *testing.T) {
	authority, key, host := NewKey(t, KeyOptions{}), NewKey(t, KeyOptions{Type: "ecdsa"}), NewKey(t, KeyOptions{})
	certificate := host.Certify(t, authority, CertificateOptions{Host: true, Principals: []string{"127.0.0.1"}})
	s := Start(t, Options{HostKeys: []Key{host}, HostCertificates: []string{certificate}, UserAuthorities: []Key{authority}})
	key.Certify(t, authority, CertificateOptions{Principals: []string{s.User}})
	if out, err := login(t, s, key, s.User, "true"); err != nil {
		t.Errorf("%v: %s\n%s", err, out, s.Log())
	}
}

func TestLabUser(t *testing.T) {
	key := NewKey(t, KeyOptions{Passphrase: ""})
	s := Start(t, Options{AuthorizedKeys: []string{key.Public}})
	name, home := NewUser(t, UserOptions{Shell: "/bin/bash", Files: map[string]string{".bashrc": "echo noise"}})
	if out, err := login(t, s, key, name, "pwd"); err != nil || strings.TrimSpace(out) != "noise\n"+home {
		t.Errorf("%v: %q\n%s", err, out, s.Log())
	}
	locked, _ := NewUser(t, UserOptions{Locked: true})
	if out, err := login(t, s, key, locked, "true"); err == nil {
		t.Errorf("a locked account was let in: %s", out)
	}
	socket := Agent(t, key)
	if info, err := os.Stat(socket); err != nil || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("agent: %v", err)
	}
}
