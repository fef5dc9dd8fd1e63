package sshx

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
)

// server is a small sshd: it takes one key, runs three commands and forwards to an echo.
type server struct {
	port     int
	hostKey  ssh.Signer
	listener net.Listener
	sessions atomic.Int32 // open now
	peak     atomic.Int32
	full     atomic.Int32 // how many sessions are refused before there is room
	logins   atomic.Int32 // connections that came as far as authentication
	mu       sync.Mutex
	conns    []net.Conn
}

type serverOptions struct {
	hostKeys []ssh.Signer
	allowed  []ssh.PublicKey
	maxTries int
	// second asks for a password on top of a key.
	second bool
	// forward decides on a channel; nil echoes.
	forward func(network, address string) *ssh.OpenChannelError
	// through connects channels to where they are to go.
	through bool
	// muteChannels leaves channel requests unanswered.
	muteChannels bool
	// fullSessions is where server.full begins.
	fullSessions int32
}

func newSigner(t *testing.T) (ssh.Signer, ed25519.PrivateKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, private
}

// newKey returns a key as OpenSSH writes it, encrypted if a passphrase is given.
func newKey(t *testing.T, passphrase string) (content string, public ssh.PublicKey) {
	t.Helper()
	signer, private := newSigner(t)
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), signer.PublicKey()
}

func startServer(t *testing.T, options serverOptions) *server {
	t.Helper()
	if len(options.hostKeys) == 0 {
		key, _ := newSigner(t)
		options.hostKeys = []ssh.Signer{key}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	s := &server{listener: listener, hostKey: options.hostKeys[0], port: portOf(listener)}
	s.full.Store(options.fullSessions)
	config := &ssh.ServerConfig{MaxAuthTries: options.maxTries}
	config.PublicKeyCallback = func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		for _, allowed := range options.allowed {
			if string(allowed.Marshal()) != string(key.Marshal()) {
				continue
			}
			if options.second {
				return nil, &ssh.PartialSuccessError{Next: ssh.ServerAuthCallbacks{
					PasswordCallback: func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) { return nil, io.EOF },
				}}
			}
			return nil, nil
		}
		return nil, io.EOF
	}
	for _, key := range options.hostKeys {
		config.AddHostKey(key)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			wait.Go(func() { s.serve(conn, config, options) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.cut()
		wait.Wait()
	})
	return s
}

func portOf(listener net.Listener) int {
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	number, _ := strconv.Atoi(port)
	return number
}

// cut breaks all connections.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

func (s *server) serve(conn net.Conn, config *ssh.ServerConfig, options serverOptions) {
	s.logins.Add(1)
	peer, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		_ = conn.Close()
		return
	}
	defer func() { _ = peer.Close() }()
	go ssh.DiscardRequests(requests)
	var wait sync.WaitGroup
	defer wait.Wait()
	for opened := range channels {
		if options.muteChannels {
			continue
		}
		wait.Go(func() { s.channel(opened, options) })
	}
}

func (s *server) channel(opened ssh.NewChannel, options serverOptions) {
	var network, address string
	switch opened.ChannelType() {
	case "session":
		if s.full.Add(-1) >= 0 {
			_ = opened.Reject(ssh.ConnectionFailed, "open failed")
			return
		}
		s.session(opened)
		return
	case "direct-streamlocal@openssh.com":
		var m struct {
			Path, Reserved string
			Zero           uint32
		}
		_ = ssh.Unmarshal(opened.ExtraData(), &m)
		network, address = "unix", m.Path
	case "direct-tcpip":
		var m struct {
			Host     string
			Port     uint32
			From     string
			FromPort uint32
		}
		_ = ssh.Unmarshal(opened.ExtraData(), &m)
		network, address = "tcp", net.JoinHostPort(m.Host, strconv.Itoa(int(m.Port)))
	}
	if options.forward != nil {
		if refused := options.forward(network, address); refused != nil {
			_ = opened.Reject(refused.Reason, refused.Message)
			return
		}
	}
	var far net.Conn
	if options.through {
		var err error
		if far, err = net.Dial(network, address); err != nil { //nolint:noctx // loopback
			_ = opened.Reject(ssh.ConnectionFailed, err.Error())
			return
		}
		defer func() { _ = far.Close() }()
	}
	channel, requests, err := opened.Accept()
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	if far != nil {
		go func() { _, _ = io.Copy(far, channel) }()
		_, _ = io.Copy(channel, far)
		_ = channel.Close()
		return
	}
	if address != "/silent" {
		_, _ = io.Copy(channel, channel)
	} else {
		_, _ = io.Copy(io.Discard, channel)
	}
	_ = channel.Close()
}

// session knows "cat", "exit N" (with a line on stderr) and anything else, which waits.
func (s *server) session(opened ssh.NewChannel) {
	channel, requests, err := opened.Accept()
	if err != nil {
		return
	}
	now := s.sessions.Add(1)
	for peak := s.peak.Load(); now > peak && !s.peak.CompareAndSwap(peak, now); peak = s.peak.Load() {
	}
	// Counted out before the client can see the end and use the slot again.
	end := sync.OnceFunc(func() {
		s.sessions.Add(-1)
		_ = channel.Close()
	})
	defer end()
	var started sync.WaitGroup
	defer started.Wait()
	for request := range requests {
		if request.Type == "signal" {
			return
		}
		_ = request.Reply(request.Type == "exec", nil)
		if request.Type != "exec" {
			continue
		}
		var exec struct{ Command string }
		_ = ssh.Unmarshal(request.Payload, &exec)
		code := 0
		if exec.Command == "cat" {
			started.Go(func() {
				_, _ = io.Copy(channel, channel)
				_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{0}))
				end()
			})
		} else if _, err := fmt.Sscanf(exec.Command, "exit %d", &code); err == nil {
			_, _ = fmt.Fprint(channel.Stderr(), "leaving\n")
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
			return
		}
	}
}

// knownHosts writes a known_hosts file with the lines given.
func knownHosts(t *testing.T, lines ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	var content string
	for _, line := range lines {
		content += line + "\n"
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{file}
}

func (s *server) line(key ssh.PublicKey) string {
	return knownName("127.0.0.1", s.port) + " " + string(ssh.MarshalAuthorizedKey(key))
}
