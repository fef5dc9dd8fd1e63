package hosttest

import (
	"context"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/crypto/ssh"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
)

// dockerSocket is the one socket on a host.
const dockerSocket = engine.DefaultSocket

// open answers a request for a channel.
func (s *sshServer) open(ctx context.Context, request ssh.NewChannel, restricted bool) {
	if restricted && request.ChannelType() != "session" {
		s.forwards.Add(1)
		_ = request.Reject(ssh.Prohibited, "open failed")
		return
	}
	switch request.ChannelType() {
	case "session":
		s.sessions.Add(1)
		channel, requests, err := request.Accept()
		if err != nil {
			return
		}
		s.session(ctx, channel, requests, restricted)
	case "direct-streamlocal@openssh.com":
		s.forwards.Add(1)
		s.openSocket(request)
	case "direct-tcpip":
		s.forwards.Add(1)
		s.openTCP(request)
	default:
		_ = request.Reject(ssh.UnknownChannelType, "unsupported channel type")
	}
}

// openSocket connects to the engine. sshd names no reason when that fails: a forbidden forwarding,
// a missing socket and a socket without permission all read "open failed".
func (s *sshServer) openSocket(request ssh.NewChannel) {
	var target struct {
		Path     string
		Reserved string
		Number   uint32
	}
	faults := s.host.faults()
	if err := ssh.Unmarshal(request.ExtraData(), &target); err != nil ||
		(target.Path != dockerSocket && target.Path != "/run/docker.sock") ||
		faults.forbidForwarding || faults.engineDown || faults.denySocket {
		_ = request.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	s.join(request, s.host.engine.listener)
}

// openTCP connects to a service of the simulated network.
func (s *sshServer) openTCP(request ssh.NewChannel) {
	var target struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	if s.host.faults().forbidForwarding {
		_ = request.Reject(ssh.Prohibited, "open failed")
		return
	}
	if err := ssh.Unmarshal(request.ExtraData(), &target); err != nil {
		_ = request.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	listener, problem := s.host.route(target.Host, int(target.Port))
	if listener == nil {
		_ = request.Reject(ssh.ConnectionFailed, problem)
		return
	}
	s.join(request, listener)
}

func (s *sshServer) join(request ssh.NewChannel, listener *backlog) {
	conn, err := listener.dial()
	if err != nil {
		_ = request.Reject(ssh.ConnectionFailed, "Connection refused")
		return
	}
	channel, requests, err := request.Accept()
	if err != nil {
		_ = conn.Close()
		return
	}
	splice(channel, requests, conn)
}

// route finds the service behind an address as seen from a host; else it says what connect(2) would.
func (h *Host) route(name string, port int) (*backlog, string) {
	f := h.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	target := f.holder(h, name)
	if target == nil {
		return nil, "No route to host"
	}
	for _, c := range target.containers {
		if c.program == nil {
			continue
		}
		if listener := c.program.listens(name, port); listener != nil {
			return listener, ""
		}
	}
	return nil, "Connection refused"
}

// holder is the host that has an address, as seen from h. The lock is held.
func (f *Fleet) holder(h *Host, name string) *Host {
	if name == "localhost" || name == "127.0.0.1" || name == "::1" || name == h.name {
		return h
	}
	address, err := netip.ParseAddr(name)
	for _, host := range f.hosts {
		if host.off {
			continue
		}
		if host.name == name || (err == nil && host.holds(address)) {
			return host
		}
	}
	return nil
}

// splitHostPort splits HOST:PORT; a port that is no number is 0.
func splitHostPort(address string) (string, int) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return address, 0
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return host, 0
	}
	return host, port
}
