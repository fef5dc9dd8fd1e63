package sshx

import (
	"context"
	"sync"
	"time"
)

// slots limit the sessions of a connection. sshd does not say how many it allows, so a refusal lowers the limit
// to what was open then. It may be too low: sshd also refuses for a moment while it has not yet noticed the end
// of a session. So from time to time one session more is tried, and raises the limit if it is let in.
type slots struct {
	mutex  sync.Mutex
	most   int
	limit  int
	open   int
	ended  int // sessions so far
	probed time.Time
	freed  chan struct{} // closed and replaced when a slot has become free
}

// probeEvery is how often a session beyond the lowered limit is tried.
const probeEvery = 250 * time.Millisecond

func newSlots(most int) *slots {
	return &slots{most: most, limit: most, freed: make(chan struct{})}
}

// take waits for a slot.
func (s *slots) take(ctx context.Context, done <-chan struct{}) error {
	for {
		freed, probe, taken := s.try()
		if taken {
			return nil
		}
		timer := time.NewTimer(probe)
		select {
		case <-freed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-done:
			timer.Stop()
			return errEnded
		}
		timer.Stop()
	}
}

// try takes a slot, if one is free or it is time to try one more. Else it says what to wait for.
func (s *slots) try() (freed <-chan struct{}, probe time.Duration, taken bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	wait := probeEvery - time.Since(s.probed)
	beyond := s.limit < s.most && wait <= 0
	if s.open < s.limit || beyond {
		if s.open >= s.limit {
			s.probed = time.Now()
		}
		s.open++
		return nil, 0, true
	}
	return s.freed, max(wait, probeEvery/8), false
}

// give returns the slot of a session that has ended.
func (s *slots) give() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.open--
	s.ended++
	s.wake()
}

// refused returns the slot of a session that sshd did not open. It says whether others are open, whose end can
// be waited for, and how many have ended so far.
func (s *slots) refused() (others bool, ended int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.open--
	s.limit = max(1, min(s.limit, s.open))
	s.probed = time.Now()
	s.wake()
	return s.open > 0, s.ended
}

// opened notes that sshd let a session in.
func (s *slots) opened() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.limit = min(max(s.limit, s.open), s.most)
}

func (s *slots) wake() {
	close(s.freed)
	s.freed = make(chan struct{})
}
