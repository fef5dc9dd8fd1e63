package sshx

import (
	"sync"
	"time"
)

// deadline is a moment that can be moved; passed gives a channel that is closed when it is over.
// Whoever waits on the channel also sees a deadline that is set later.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	over  chan struct{}
}

func newDeadline() *deadline { return &deadline{over: make(chan struct{})} }

// passed is closed once the deadline is over, until set moves it again.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// set moves the deadline; zero means never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if isClosed(d.over) {
		d.over = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		close(d.over)
		return
	}
	over := d.over
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		// A timer that was stopped too late must not end the deadline that replaced it.
		if d.timer == timer {
			close(over)
			d.timer = nil
		}
	})
	d.timer = timer
}
