//go:build unix

// Package sshtest starts a real OpenSSH sshd on a loopback port for the length of a test, as root or as
// the current user, and makes keys and certificates with ssh-keygen. It is for tests with the build tag
// lab, which run where OpenSSH is installed: a missing program fails the test.
package sshtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options describe a server. The zero value is one that nobody can log in to.
type Options struct {
	// Config are lines of sshd_config. They come before our own, and of two values sshd takes the first.
	Config []string
	// AuthorizedKeys are lines of authorized_keys, valid for every user.
	AuthorizedKeys []string
	// HostKeys are the server's keys; empty means one new ed25519 key.
	HostKeys []Key
	// HostCertificates are files that [Key.Certify] made of the host keys.
	HostCertificates []string
	// UserAuthorities are keys whose user certificates are accepted.
	UserAuthorities []Key
	// Address to listen on; empty means 127.0.0.1.
	Address string
}

// Server is a running sshd.
type Server struct {
	// Host and Port are where it listens, User is the login of whoever runs the test.
	Host string
	Port int
	User string
	// HostKeys are its keys, in order.
	HostKeys []Key

	folder string
	config string
	mutex  sync.Mutex
	daemon *exec.Cmd // nil while it is stopped
}

const (
	startAttempts = 5                // a free port can be taken by others before sshd binds it
	startPatience = 10 * time.Second // for "Server listening"
)

// Start runs a server until the test ends, with all that runs in its sessions.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	current, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Host: options.Address, User: current.Username, HostKeys: options.HostKeys, folder: folder(t)}
	if s.Host == "" {
		s.Host = "127.0.0.1"
	}
	if len(s.HostKeys) == 0 {
		s.HostKeys = []Key{NewKey(t, KeyOptions{})}
	}
	var authorities strings.Builder
	for _, key := range options.UserAuthorities {
		authorities.WriteString(key.Public + "\n")
	}
	write(t, filepath.Join(s.folder, "authorities"), authorities.String(), 0o644)
	s.Authorize(t, options.AuthorizedKeys...)
	s.config = s.lines(options)
	t.Cleanup(s.Stop)
	s.StartAgain(t)
	return s
}

// lines is the sshd_config but for the port.
func (s *Server) lines(options Options) string {
	lines := append([]string{}, options.Config...)
	lines = append(lines,
		"ListenAddress "+s.Host,
		"PidFile none",
		"LogLevel VERBOSE",
		"UsePAM no",
		"UseDNS no",
		"StrictModes no", // temporary folders belong to whoever runs the test
		"PermitRootLogin prohibit-password",
		"PasswordAuthentication no",
		"KbdInteractiveAuthentication no",
		"AuthorizedKeysFile "+filepath.Join(s.folder, "authorized_keys"),
	)
	if len(options.UserAuthorities) > 0 {
		lines = append(lines, "TrustedUserCAKeys "+filepath.Join(s.folder, "authorities"))
	}
	for _, key := range s.HostKeys {
		lines = append(lines, "HostKey "+key.File)
	}
	for _, file := range options.HostCertificates {
		lines = append(lines, "HostCertificate "+file)
	}
	return strings.Join(lines, "\n") + "\n"
}

// StartAgain starts a stopped server, on the port that it had.
func (s *Server) StartAgain(t testing.TB) {
	t.Helper()
	program := find(t, "sshd")
	if os.Geteuid() == 0 { // where sshd keeps its unprivileged half
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { //nolint:gosec // sshd demands that others may enter it
			t.Fatal(err)
		}
	}
	var last string
	for range startAttempts {
		port := s.Port
		if port == 0 {
			port = freePort(t, s.Host)
		}
		if last = s.launch(t, program, port); last == "" {
			s.Port = port
			return
		}
		if !strings.Contains(last, "already in use") {
			break
		}
	}
	t.Fatalf("sshd does not start:\n%s", last)
}

// launch tries one port; it returns what sshd said if it does not listen.
func (s *Server) launch(t testing.TB, program string, port int) string {
	t.Helper()
	config, log := filepath.Join(s.folder, "sshd_config"), s.logFile()
	write(t, config, fmt.Sprintf("Port %d\n", port)+s.config, 0o600)
	before := len(s.Log())
	daemon := exec.Command(program, "-D", "-f", config, "-E", log) //nolint:noctx,gosec // ends with Stop; the arguments are ours
	var said bytes.Buffer
	daemon.Stdout, daemon.Stderr = &said, &said
	if err := daemon.Start(); err != nil {
		return err.Error()
	}
	ended := make(chan struct{})
	go func() {
		_ = daemon.Wait()
		close(ended)
	}()
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); {
		if strings.Contains(s.Log()[before:], "Server listening on ") {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.daemon = daemon
			return ""
		}
		select {
		case <-ended:
			return said.String() + s.Log()[before:]
		case <-time.After(5 * time.Millisecond):
		}
	}
	_ = daemon.Process.Kill()
	<-ended
	return "it did not listen in time: " + said.String() + s.Log()[before:]
}

// Stop kills the server, its connections and what was started in them.
func (s *Server) Stop() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.daemon == nil {
		return
	}
	killTree(s.daemon.Process.Pid, fmt.Sprintf(" %s %d", s.Host, s.Port))
	s.daemon = nil
}

// Address is "host:port".
func (s *Server) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// Log is what sshd has logged so far, at level VERBOSE unless the options say otherwise.
func (s *Server) Log() string {
	content, err := os.ReadFile(s.logFile())
	if err != nil {
		return ""
	}
	return string(content)
}

func (s *Server) logFile() string { return filepath.Join(s.folder, "log") }

// Authorize replaces the lines of authorized_keys.
func (s *Server) Authorize(t testing.TB, lines ...string) {
	t.Helper()
	write(t, filepath.Join(s.folder, "authorized_keys"), strings.Join(lines, "\n")+"\n", 0o644)
}

// KnownHosts writes a known_hosts file that trusts the server's keys, and returns its path.
func (s *Server) KnownHosts(t testing.TB) string {
	t.Helper()
	var lines []string
	for _, key := range s.HostKeys {
		lines = append(lines, fmt.Sprintf("[%s]:%d %s", s.Host, s.Port, key.Public))
	}
	return KnownHosts(t, lines...)
}

// KnownHosts writes a known_hosts file with the lines given, and returns its path.
func KnownHosts(t testing.TB, lines ...string) string {
	t.Helper()
	file := filepath.Join(folder(t), "known_hosts")
	write(t, file, strings.Join(lines, "\n")+"\n", 0o600)
	return file
}

// find is the path of a program of OpenSSH; a bare PATH lacks sbin, where sshd is.
func find(t testing.TB, program string) string {
	t.Helper()
	for _, name := range []string{program, "/usr/sbin/" + program, "/usr/local/sbin/" + program} {
		// sshd insists on an absolute path: it starts itself anew for every connection.
		if path, err := exec.LookPath(name); err == nil && filepath.IsAbs(path) {
			return path
		}
	}
	t.Fatalf("%s is missing: install OpenSSH (Debian: openssh-server and openssh-client)", program)
	return ""
}

// folder is a temporary one with a short path, for sockets, which other users can enter, as sshd reads
// authorized_keys with the rights of the user who logs in.
func folder(t testing.TB) string {
	t.Helper()
	made, err := os.MkdirTemp("", "ssh") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(made) })
	if err := os.Chmod(made, 0o755); err != nil { //nolint:gosec // see above
		t.Fatal(err)
	}
	return made
}

func write(t testing.TB, file, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func freePort(t testing.TB, host string) int {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil || !ok {
		t.Fatal(err)
	}
	return address.Port
}
