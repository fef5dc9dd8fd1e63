package sshx

import (
	"context"
	"sync"
)

// slots limit the sessions of a connection. sshd does not say how many it allows, so a refusal lowers the
// limit to what was open then, and a row of successes raises it again by one.
type slots struct {
	mutex   sync.Mutex
	most    int
	limit   int
	open    int
	success int
	freed   chan struct{} // closed and replaced when a slot may have become free
}

// raiseAfter is the row of successes that raises the limit: sshd also refuses for a moment while it has not
// yet noticed the end of a session, so a low limit may be wrong.
const raiseAfter = 16

func newSlots(most int) *slots {
	return &slots{most: most, limit: most, freed: make(chan struct{})}
}

// take waits for a slot.
func (s *slots) take(ctx context.Context, done <-chan struct{}) error {
	for {
		s.mutex.Lock()
		if s.open < s.limit {
			s.open++
			s.mutex.Unlock()
			return nil
		}
		freed := s.freed
		s.mutex.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-done:
			return errEnded
		}
	}
}

// give returns a slot.
func (s *slots) give() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.open--
	s.wake()
}

// refused returns a slot whose session sshd did not open. It says whether others are open, whose end can be
// waited for.
func (s *slots) refused() (others bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.open--
	s.success = 0
	s.limit = max(1, min(s.limit, s.open))
	s.wake()
	return s.open > 0
}

// opened counts a success.
func (s *slots) opened() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.success++; s.success >= raiseAfter && s.limit < s.most {
		s.success = 0
		s.limit++
		s.wake()
	}
}

func (s *slots) wake() {
	close(s.freed)
	s.freed = make(chan struct{})
}
