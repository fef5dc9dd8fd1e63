package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/disk"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/files"
)

const secret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// noise is content that does not repeat.
func noise(seed uint64, size int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(content) // It never fails.
	return content
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func write(t *testing.T, folder, name string, content []byte) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// pair is a transfer between two folders over loopback.
type pair struct {
	from, to           End
	sent, received     []agent.File
	sendKey            string
	sendErr            error
	finished           map[string]agent.File
	lock               sync.Mutex
	onBytes            func(bytes int64)
	receiverEventCount int
	// through gives the address to connect to instead of the receiver's.
	through func(target string) string
	encrypt bool
}

func newPair(t *testing.T) *pair {
	t.Helper()
	end := func(name string) End {
		return End{Folder: "/models/" + name, Real: filepath.Join(t.TempDir(), name), User: "aurora", Free: disk.Free,
			ConnectTimeout: 5 * time.Second, StallTimeout: 2 * time.Second}
	}
	p := &pair{from: end("source"), to: end("target"), sendKey: secret, finished: map[string]agent.File{}}
	write(t, p.from.Real, ".keep", nil)
	return p
}

// list takes the files to move from the source's listing.
func (p *pair) list(t *testing.T) {
	t.Helper()
	listing, err := files.List(t.Context(), p.from.Real, p.from.Folder, agent.ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	p.sent, p.received = listing.Files, listing.Files
}

// run moves the files and gives the receiver's failure; the sender's is in sendErr.
func (p *pair) run(ctx context.Context, t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	listening, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- Receive(ctx, p.to, agent.ReceiveRequest{Address: "127.0.0.3", Secret: secret, Encrypt: p.encrypt, Files: p.received}, func(event agent.TransferEvent) {
			p.lock.Lock()
			defer p.lock.Unlock()
			p.receiverEventCount++
			if event.Listening != "" {
				listening <- event.Listening
			}
			if event.Finished != nil {
				p.finished[event.Finished.Name] = *event.Finished
			}
			if p.onBytes != nil && event.Bytes > 0 {
				p.onBytes(event.Bytes)
			}
		})
	}()
	select {
	case target := <-listening:
		if p.through != nil {
			target = p.through(target)
		}
		p.sendErr = Send(ctx, p.from, agent.SendRequest{Source: "127.0.0.2", Target: target, Secret: p.sendKey, Encrypt: p.encrypt, Files: p.sent}, func(agent.TransferEvent) {})
		return <-done
	case err := <-done:
		return err
	}
}

func codeOf(err error) string {
	var known *Error
	if errors.As(err, &known) {
		return known.Code
	}
	return ""
}

// contents reads a folder: files by digest, links by target.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			found[name] = "-> " + target
			return err
		}
		content, err := os.ReadFile(path)
		found[name] = digest(content)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}
