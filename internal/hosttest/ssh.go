package hosttest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/spark-stack/terraform-provider-spark/internal/delay"
)

// Counters count what the host saw since the start.
type Counters struct {
	// Connections accepted, Handshakes completed with a login, Sessions (exec) and Forwards
	// (streamlocal and TCP channels) opened, refused ones included.
	Connections, Handshakes, Sessions, Forwards int64
	// Keepalives are global requests that wanted an answer.
	Keepalives int64
	// Facts counts how often the host was looked at: each look runs nvidia-smi once.
	Facts int64
}

// sshServer is one host's sshd.
type sshServer struct {
	host  *Host
	tasks sync.WaitGroup

	mu       sync.Mutex
	signer   ssh.Signer
	listener net.Listener
	conns    map[net.Conn]struct{}
	closed   bool

	connections, handshakes, sessions, forwards, keepalives, facts atomic.Int64
}

func newSSHServer(host *Host) (*sshServer, error) {
	s := &sshServer{host: host, conns: map[net.Conn]struct{}{}}
	return s, s.changeKey()
}

func (s *sshServer) changeKey() error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signer = signer
	return nil
}

func (s *sshServer) publicKey() ssh.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signer.PublicKey()
}

// listen finds a port that is free on every host's address and starts the servers.
func (f *Fleet) listen() error {
	var last error
	for range 50 {
		last = f.listenOnce()
		if last == nil {
			return nil
		}
	}
	return fmt.Errorf("no port is free on every address: %w", last)
}

func (f *Fleet) listenOnce() error {
	port := 0
	var opened []net.Listener
	for _, host := range f.hosts {
		listener, err := listenOn(f.ctx, host.Address(), port)
		if err != nil {
			for _, other := range opened {
				err = errors.Join(err, other.Close())
			}
			return err
		}
		opened = append(opened, listener)
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return fmt.Errorf("listener has the address %v", listener.Addr())
		}
		port = address.Port
	}
	f.port = port
	for i, host := range f.hosts {
		host.ssh.serve(opened[i])
	}
	return nil
}

func listenOn(ctx context.Context, address string, port int) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp4", net.JoinHostPort(address, fmt.Sprint(port)))
}

func (s *sshServer) serve(listener net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = listener
	s.tasks.Go(func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			conn := freezable(delay.Over(accepted, time.Duration(s.host.fleet.oneWay.Load())), s.host)
			s.connections.Add(1)
			if !s.keep(conn) {
				return
			}
			s.tasks.Go(func() {
				defer s.drop(conn)
				s.login(conn)
			})
		}
	})
}

func (s *sshServer) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *sshServer) drop(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	_ = conn.Close()
}

// stop closes the port; cut also ends the connections.
func (s *sshServer) stop(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		_ = s.listener.Close()
		s.listener = nil
	}
	if cut {
		s.cutLocked()
	}
}

func (s *sshServer) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutLocked()
}

func (s *sshServer) cutLocked() {
	for conn := range s.conns {
		_ = conn.Close()
	}
}

// start opens the port again.
func (s *sshServer) start() error {
	s.mu.Lock()
	running := s.listener != nil
	s.mu.Unlock()
	if running {
		return nil
	}
	listener, err := listenOn(s.host.fleet.ctx, s.host.Address(), s.host.fleet.port)
	if err != nil {
		return err
	}
	s.serve(listener)
	return nil
}

func (s *sshServer) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop(true)
	s.tasks.Wait()
}

// login makes the handshake on a new connection and serves it.
func (s *sshServer) login(conn net.Conn) {
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-OpenSSH_9.6p1 Ubuntu-3ubuntu13.14",
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			fleet := s.host.fleet
			restricted := bytes.Equal(key.Marshal(), fleet.lookKey.Marshal())
			if meta.User() != User || s.host.faults().denyUser ||
				!restricted && !bytes.Equal(key.Marshal(), fleet.key.Marshal()) {
				return nil, fmt.Errorf("key is not authorized for %s", meta.User())
			}
			if restricted {
				return &ssh.Permissions{Extensions: map[string]string{restriction: ""}}, nil
			}
			return &ssh.Permissions{}, nil
		},
	}
	s.mu.Lock()
	config.AddHostKey(s.signer)
	s.mu.Unlock()
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return // The client was told why by the protocol.
	}
	s.handshakes.Add(1)
	ctx, cancel := context.WithCancel(s.host.fleet.ctx)
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() { s.answerGlobal(requests) })
	_, restricted := server.Permissions.Extensions[restriction]
	for channel := range channels {
		work.Go(func() { s.open(ctx, channel, restricted) })
	}
	_ = server.Close()
}

// answerGlobal answers keepalives as sshd does: with a refusal, which proves life as well.
func (s *sshServer) answerGlobal(requests <-chan *ssh.Request) {
	for request := range requests {
		if !request.WantReply {
			continue
		}
		s.keepalives.Add(1)
		_ = request.Reply(false, nil) // A failed reply means that the connection ended.
	}
}
