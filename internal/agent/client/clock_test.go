package client

import (
	"testing"
	"time"
)

func TestClockOffset(t *testing.T) {
	asked := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	answered := asked.Add(2 * time.Second)
	for read, want := range map[time.Duration]time.Duration{
		-40 * time.Second: -40 * time.Second, 0: 0, time.Second: 0, 2 * time.Second: 0, time.Minute: 58 * time.Second,
	} {
		if got := clockOffset(asked.Add(read), asked, answered); got != want {
			t.Errorf("read after %s: got %s, want %s", read, got, want)
		}
	}
}
