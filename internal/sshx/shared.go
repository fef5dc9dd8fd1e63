package sshx

import (
	"context"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Shared is what the connections of one process have in common: the host keys that were accepted under
// HostKeyAcceptNew, and the connections to jump hosts. The zero value is ready for use; a Config without
// one has its connections to itself.
type Shared struct {
	mutex    sync.Mutex
	accepted map[string]ssh.PublicKey
	jumps    map[string]*jumpConnection
}

// acceptedKey is the key that was accepted for a name of known_hosts, nil if none was.
func (s *Shared) acceptedKey(name string) ssh.PublicKey {
	if s == nil {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.accepted[name]
}

// accept remembers a key for a name, unless one was accepted earlier: that one is returned.
func (s *Shared) accept(name string, key ssh.PublicKey) (earlier ssh.PublicKey) {
	if s == nil {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known, ok := s.accepted[name]; ok {
		return known
	}
	if s.accepted == nil {
		s.accepted = map[string]ssh.PublicKey{}
	}
	s.accepted[name] = key
	return nil
}

// jumpConnection is a connection to a jump host with the number of those who use it.
type jumpConnection struct {
	ready   chan struct{} // closed when client or failure is set
	client  *client
	failure *Error
	users   int
}

// jump gives the connection to a jump host: a living one under the same key, or else a new one, for which
// everybody who asks meanwhile waits, as long as patience lasts. It ends when the last user has released it.
func (s *Shared) jump(ctx context.Context, key string, patience time.Duration, connect func(context.Context) (*client, *Error)) (*client, func(), *Error) {
	for {
		s.mutex.Lock()
		known, ok := s.jumps[key]
		if !ok {
			known = &jumpConnection{ready: make(chan struct{}), users: 1}
			if s.jumps == nil {
				s.jumps = map[string]*jumpConnection{}
			}
			s.jumps[key] = known
			s.mutex.Unlock()
			known.client, known.failure = connect(ctx)
			if known.failure != nil {
				s.drop(key, known)
			}
			close(known.ready)
			return known.client, s.releaser(key, known), known.failure
		}
		known.users++
		s.mutex.Unlock()
		release := s.releaser(key, known)
		select {
		case <-known.ready:
		case <-ctx.Done():
			release()
			return nil, nil, &Error{Kind: interruptedKind(ctx), Step: stepDial, Err: context.Cause(ctx)}
		case <-time.After(patience):
			release()
			return nil, nil, &Error{Kind: TimedOut, Step: stepDial, Err: errTimeout(patience)}
		}
		switch {
		case known.failure == nil && known.client.Err() == nil:
			return known.client, release, nil
		case known.failure != nil && !isInterruption(known.failure):
			return nil, nil, known.failure
		}
		// It was lost since, or whoever dialled it gave up for reasons of its own: once more.
		release()
		s.drop(key, known)
	}
}

// drop forgets a connection, so that the next one who asks makes a new one.
func (s *Shared) drop(key string, known *jumpConnection) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.jumps[key] == known {
		delete(s.jumps, key)
	}
}

// releaser ends one use of a connection, and the connection with its last use.
func (s *Shared) releaser(key string, known *jumpConnection) func() {
	return sync.OnceFunc(func() {
		s.mutex.Lock()
		known.users--
		last := known.users == 0
		if last && s.jumps[key] == known {
			delete(s.jumps, key)
		}
		s.mutex.Unlock()
		if last && isClosed(known.ready) && known.client != nil {
			_ = known.client.Close()
		}
	})
}
