package transfer

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// TestEncrypted looks at what is on the network: the content when it is not encrypted, and nothing of it when it is.
func TestEncrypted(t *testing.T) {
	line := []byte("the quick brown fox jumps over the lazy dog\n")
	content := bytes.Repeat(line, 50_000)
	for name, encrypt := range map[string]bool{"plain": false, "encrypted": true} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.encrypt = encrypt
			write(t, p.from.Real, "model", content)
			p.list(t)
			var lock sync.Mutex
			seen := false
			network := &wire{fault: func(_ context.Context, _ int64, part []byte) bool {
				lock.Lock()
				defer lock.Unlock()
				seen = seen || bytes.Contains(part, line)
				return true
			}}
			p.through = func(target string) string { return network.open(t, target) }
			if err := p.run(t.Context(), t); err != nil || p.sendErr != nil {
				t.Fatal(err, p.sendErr)
			}
			if diff := cmp.Diff(map[string]string{"model": digest(content)}, contents(t, p.to.Real)); diff != "" {
				t.Error(diff)
			}
			if seen == encrypt {
				t.Errorf("the content is to be seen on the network: %v", seen)
			}
		})
	}
}

func TestEncryptedFailures(t *testing.T) {
	flip := &wire{}
	var once sync.Once
	flip.fault = func(_ context.Context, _ int64, part []byte) bool {
		if len(part) > 32<<10 {
			once.Do(func() { part[17] ^= 4 })
		}
		return true
	}
	tests := map[string]struct {
		prepare  func(t *testing.T, p *pair)
		code     string
		sendCode string
	}{
		"wrong secret": {func(_ *testing.T, p *pair) { p.sendKey = strings.Repeat("ff", 32) }, agent.TransferConnect, agent.TransferAuth},
		"no space": {func(_ *testing.T, p *pair) {
			p.to.Free = func(string) (int64, error) { return 1 << 20, nil }
		}, agent.TransferNoSpace, ""},
		"other content": {func(_ *testing.T, p *pair) {
			p.received = []agent.File{{Name: "model", Size: 4 << 20, SHA256: digest(nil)}}
		}, agent.TransferMismatch, agent.TransferMismatch},
		// What is changed on its way is not even taken: it is sent again.
		"bit flipped": {func(t *testing.T, p *pair) {
			p.through = func(target string) string { return flip.open(t, target) }
		}, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.encrypt = true
			p.to.ConnectTimeout = time.Second
			write(t, p.from.Real, "model", noise(15, 4<<20))
			p.list(t)
			test.prepare(t, p)
			err := p.run(t.Context(), t)
			if codeOf(err) != test.code || codeOf(p.sendErr) != test.sendCode {
				t.Errorf("receiver: %v\nsender: %v", err, p.sendErr)
			}
		})
	}
}
