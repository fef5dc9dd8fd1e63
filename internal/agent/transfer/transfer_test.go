package transfer

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/files"
)

func TestTransfer(t *testing.T) {
	p := newPair(t)
	large, small := noise(1, 5<<20+17), noise(2, 100)
	write(t, p.from.Real, "sub/large", large)
	write(t, p.from.Real, "small", small)
	write(t, p.from.Real, "empty", nil)
	past := time.Date(2026, 3, 4, 5, 6, 7, 891, time.UTC)
	if err := os.Chtimes(filepath.Join(p.from.Real, "sub/large"), past, past); err != nil {
		t.Fatal(err)
	}
	p.list(t)
	write(t, p.to.Real, "small", []byte("old"))
	write(t, p.to.Real, "other", []byte("stays"))
	if err := p.run(t.Context(), t); err != nil || p.sendErr != nil {
		t.Fatal(err, p.sendErr)
	}
	want := map[string]string{"sub/large": digest(large), "small": digest(small), "empty": digest(nil), "other": digest([]byte("stays"))}
	if diff := cmp.Diff(want, contents(t, p.to.Real)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(p.to.Real, "sub/large")); err != nil || !info.ModTime().Equal(past) {
		t.Errorf("time is not the source's: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(p.to.Real, files.Partial)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of unfinished copies stays: %v", err)
	}
	wantFile := agent.File{Name: "sub/large", Size: int64(len(large)), SHA256: digest(large), Modified: past.UnixNano()}
	if diff := cmp.Diff(wantFile, p.finished["sub/large"]); diff != "" {
		t.Error(diff)
	}
}

func TestTransferNothing(t *testing.T) {
	p := newPair(t)
	if err := p.run(t.Context(), t); err != nil || p.sendErr != nil {
		t.Error(err, p.sendErr)
	}
}

func TestTransferHubCache(t *testing.T) {
	p := newPair(t)
	content := noise(3, 1000)
	write(t, p.from.Real, "blobs/abc", content)
	symlink(t, "../../blobs/abc", filepath.Join(p.from.Real, "snapshots/r1/model"))
	symlink(t, "../../blobs/abc", filepath.Join(p.from.Real, "snapshots/r2/model"))
	p.list(t)
	p.sent = p.sent[1:] // The snapshots alone; the blob comes with them.
	p.received = p.sent
	symlink(t, "../../blobs/older", filepath.Join(p.to.Real, "snapshots/r1/model"))
	if err := p.run(t.Context(), t); err != nil || p.sendErr != nil {
		t.Fatal(err, p.sendErr)
	}
	want := map[string]string{"blobs/abc": digest(content), "snapshots/r1/model": "-> ../../blobs/abc", "snapshots/r2/model": "-> ../../blobs/abc"}
	if diff := cmp.Diff(want, contents(t, p.to.Real)); diff != "" {
		t.Error(diff)
	}
	if len(p.finished) != 2 {
		t.Errorf("%d files are reported, want 2", len(p.finished))
	}
}

func TestTransferFailures(t *testing.T) {
	content := noise(4, 3<<20)
	tests := map[string]struct {
		prepare      func(t *testing.T, p *pair)
		code, text   string
		sendCode     string
		partialStays bool
	}{
		"wrong secret": {
			prepare: func(_ *testing.T, p *pair) { p.sendKey = strings.Repeat("ff", 32) },
			code:    agent.TransferAuth, sendCode: agent.TransferAuth, text: "does not know the secret",
		},
		"no secret": {
			prepare: func(_ *testing.T, p *pair) { p.sendKey = "" },
			code:    agent.TransferConnect, sendCode: agent.TransferAuth, text: "nobody connected to 127.0.0.3:",
		},
		"no space": {
			prepare: func(_ *testing.T, p *pair) { p.to.Free = func(string) (int64, error) { return 1 << 20, nil } },
			code:    agent.TransferNoSpace, text: "/models/target needs 3145728 more bytes for 1 files and has 1048576 free, 2097152 too few",
		},
		"other content than expected": {
			prepare: func(_ *testing.T, p *pair) { p.received[0].SHA256 = digest([]byte("other")) },
			code:    agent.TransferMismatch, sendCode: agent.TransferMismatch, text: "/models/target/model: sha256 is ",
		},
		"other size than expected": {
			prepare: func(t *testing.T, p *pair) { write(t, p.from.Real, "model", content[:5]) },
			code:    agent.TransferMismatch, sendCode: agent.TransferMismatch, text: "/models/source/model has 5 bytes, 3145728 are expected",
		},
		"source is gone": {
			prepare: func(t *testing.T, p *pair) {
				if err := os.Remove(filepath.Join(p.from.Real, "model")); err != nil {
					t.Fatal(err)
				}
			},
			code: agent.TransferFailed, sendCode: agent.TransferFailed, text: "no such file",
		},
		"not asked for": {
			prepare: func(_ *testing.T, p *pair) { p.received = []agent.File{{Name: "another", Size: 1}} },
			code:    agent.TransferFailed, sendCode: agent.TransferFailed, text: `"model", which was not asked for`,
		},
		"target's parent leads outside": {
			prepare: func(t *testing.T, p *pair) {
				write(t, p.from.Real, "way/model", content)
				symlink(t, t.TempDir(), filepath.Join(p.to.Real, "way"))
				p.sent = []agent.File{{Name: "way/model", Size: int64(len(content))}}
				p.received = p.sent
			},
			code: agent.TransferFailed, sendCode: agent.TransferFailed, text: "its path leaves the folder", partialStays: true,
		},
		"source leads outside": {
			prepare: func(t *testing.T, p *pair) {
				symlink(t, "/etc/passwd", filepath.Join(p.from.Real, "secret"))
				p.sent = []agent.File{{Name: "secret", Size: 1}}
				p.received = p.sent
			},
			code: agent.TransferFailed, sendCode: agent.TransferFailed, text: "its path leaves the folder",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			write(t, p.from.Real, "model", content)
			p.list(t)
			p.received = append([]agent.File{}, p.received...)
			p.to.ConnectTimeout = 500 * time.Millisecond
			test.prepare(t, p)
			err := p.run(t.Context(), t)
			if codeOf(err) != test.code || err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("receiver: code %q, %v", codeOf(err), err)
			}
			if codeOf(p.sendErr) != test.sendCode {
				t.Errorf("sender: code %q, %v", codeOf(p.sendErr), p.sendErr)
			}
			for name := range contents(t, p.to.Real) {
				if name != "way" && (!test.partialStays || !strings.HasPrefix(name, files.Partial)) {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	for name, file := range map[string]agent.File{
		"absolute": {Name: "/etc/passwd"}, "parent": {Name: "../x"}, "parent within": {Name: "a/../../x"}, "not clean": {Name: "a//b"},
		"empty": {}, "itself": {Name: "."}, "ours": {Name: files.Partial + "/x"}, "zero byte": {Name: "a\x00b"},
		"link outside": {Name: "a/b", Link: "../../x"}, "absolute link": {Name: "a", Link: "/etc/passwd"}, "link to ours": {Name: "a", Link: files.Partial + "/x"},
	} {
		if _, err := plan([]agent.File{file}); codeOf(err) != agent.TransferFailed {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := plan([]agent.File{{Name: "a", Link: "c", Size: 1}, {Name: "b", Link: "c", Size: 2}}); err == nil {
		t.Error("one content with two sizes is accepted")
	}
}

func TestCancelAndResume(t *testing.T) {
	p := newPair(t)
	content := noise(5, 64<<20)
	write(t, p.from.Real, "model", content)
	p.list(t)
	ctx, cancel := context.WithCancel(t.Context())
	p.onBytes = func(int64) { cancel() }
	if err := p.run(ctx, t); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	left := contents(t, p.to.Real)
	if _, found := left[files.Partial+"/model"]; !found || len(left) != 1 {
		t.Fatalf("left are %v", left)
	}
	p.onBytes = nil
	info, err := os.Stat(filepath.Join(p.to.Real, files.Partial, "model"))
	if err != nil || info.Size() == 0 {
		t.Fatal(info, err)
	}
	// What is there counts as space; 1 byte less than the rest is too little.
	rest := int64(len(content)) - info.Size()
	p.to.Free = func(string) (int64, error) { return rest - 1, nil }
	if err := p.run(t.Context(), t); codeOf(err) != agent.TransferNoSpace {
		t.Errorf("got %v", err)
	}
	p.to.Free = func(string) (int64, error) { return rest, nil }
	if err := p.run(t.Context(), t); err != nil || p.sendErr != nil {
		t.Fatal(err, p.sendErr)
	}
	if diff := cmp.Diff(map[string]string{"model": digest(content)}, contents(t, p.to.Real)); diff != "" {
		t.Error(diff)
	}
}

func TestResumeOfAnotherFile(t *testing.T) {
	for name, left := range map[string][]byte{"other": noise(7, 2<<20), "longer": noise(7, 4<<20)} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			content := noise(6, 3<<20)
			write(t, p.from.Real, "model", content)
			p.list(t)
			write(t, p.to.Real, files.Partial+"/model", left)
			if err := p.run(t.Context(), t); err != nil || p.sendErr != nil {
				t.Fatal(err, p.sendErr)
			}
			if diff := cmp.Diff(map[string]string{"model": digest(content)}, contents(t, p.to.Real)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSourceCutWhileSending(t *testing.T) {
	p := newPair(t)
	p.to.ConnectTimeout = time.Second
	write(t, p.from.Real, "model", noise(8, 64<<20))
	p.list(t)
	var once sync.Once
	p.onBytes = func(int64) {
		once.Do(func() {
			if err := os.Truncate(filepath.Join(p.from.Real, "model"), 1000); err != nil {
				t.Error(err)
			}
		})
	}
	err := p.run(t.Context(), t)
	if codeOf(err) != agent.TransferFailed || !strings.Contains(err.Error(), "the sender closed the connection") {
		t.Errorf("receiver: %v", err)
	}
	if codeOf(p.sendErr) != agent.TransferFailed || !strings.Contains(p.sendErr.Error(), "while it was read") {
		t.Errorf("sender: %v", p.sendErr)
	}
	if _, found := contents(t, p.to.Real)["model"]; found {
		t.Error("a cut file is in place")
	}
}

func TestStrangersAndSilence(t *testing.T) {
	p := newPair(t)
	write(t, p.from.Real, "model", noise(9, 1000))
	p.list(t)
	listening, done := make(chan string, 1), make(chan error, 1)
	p.to.StallTimeout, p.to.ConnectTimeout = 300*time.Millisecond, time.Second
	go func() {
		done <- Receive(t.Context(), p.to, agent.ReceiveRequest{Address: "127.0.0.3", Secret: secret, Files: p.received}, func(event agent.TransferEvent) {
			if event.Listening != "" {
				listening <- event.Listening
			}
		})
	}()
	address := <-listening
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	if err := dial().Close(); err != nil { // A stranger that goes away is nobody's concern.
		t.Fatal(err)
	}
	conn := dial()
	defer conn.Close() //nolint:errcheck // The receiver closes it too.
	key, err := decodeSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proveSender(conn, key); err != nil {
		t.Fatal(err)
	}
	if err := <-done; codeOf(err) != agent.TransferStalled {
		t.Errorf("a sender that says nothing: %v", err)
	}
}

func TestClean(t *testing.T) {
	folder := t.TempDir()
	if err := Clean(t.Context(), folder+"/none", "/m"); err != nil {
		t.Error(err)
	}
	write(t, folder, files.Partial+"/sub/model", []byte("x"))
	write(t, folder, "sub/"+files.Partial+"/model", []byte("x"))
	write(t, folder, "model", []byte("x"))
	for range 2 {
		if err := Clean(t.Context(), folder, "/m"); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"model": digest([]byte("x")), "sub/" + files.Partial + "/model": digest([]byte("x"))}
	if diff := cmp.Diff(want, contents(t, folder)); diff != "" {
		t.Error(diff)
	}
	outside := t.TempDir()
	write(t, outside, "precious", []byte("x"))
	symlink(t, outside, filepath.Join(folder, files.Partial))
	if err := Clean(t.Context(), folder, "/m"); err != nil {
		t.Fatal(err)
	}
	if len(contents(t, outside)) != 1 {
		t.Error("a link was followed")
	}
}

func TestDenied(t *testing.T) {
	end := End{Folder: "/models", User: "aurora"}
	err := end.fail("write", "m/x", &fs.PathError{Op: "openat", Path: "m/x", Err: fs.ErrPermission})
	if codeOf(err) != agent.TransferDenied || !strings.Contains(err.Error(), "write /models/m/x as user aurora: ") {
		t.Error(err)
	}
}
