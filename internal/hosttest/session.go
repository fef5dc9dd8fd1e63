package hosttest

import (
	"context"
	"sync"

	"golang.org/x/crypto/ssh"
)

// session serves one session channel: a single exec, ended with the channel.
func (s *sshServer) session(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request, restricted bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	started := false
	for request := range requests {
		switch request.Type {
		case "exec":
			var payload struct{ Command string }
			ok := ssh.Unmarshal(request.Payload, &payload) == nil && !started
			_ = request.Reply(ok, nil) // A failed reply means that the connection ended.
			if ok {
				started = true
				work.Go(func() { s.exec(ctx, channel, payload.Command, restricted) })
			}
		case "env":
			_ = request.Reply(false, nil) // As sshd without AcceptEnv.
		case "signal":
			cancel()
		default:
			if request.WantReply {
				_ = request.Reply(false, nil)
			}
		}
	}
	cancel()
	_ = channel.Close() // It may be closed already.
}

// exec runs a command line and ends the session with its code.
func (s *sshServer) exec(ctx context.Context, channel ssh.Channel, command string, restricted bool) {
	defer func() { _ = channel.Close() }()
	if restricted || isAgent(command) {
		code := s.host.serveAgent(ctx, channel, restricted)
		sendExit(channel, code)
		return
	}
	outcome := s.host.shell(command)
	// A failed write means that the client is gone.
	_, _ = channel.Write([]byte(outcome.Stdout))
	_, _ = channel.Stderr().Write([]byte(outcome.Stderr))
	sendExit(channel, outcome.ExitCode)
}

// sendExit leaves the end of the output to the end of the session: HTTP/2 may still write, which the library
// allows beside Close alone.
func sendExit(channel ssh.Channel, code int) {
	payload := ssh.Marshal(struct{ Status uint32 }{uint32(code)}) //nolint:gosec // Exit codes are 0 to 255.
	_, _ = channel.SendRequest("exit-status", false, payload)     // The client may be gone.
}
