package embedded

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPack(t *testing.T) {
	content := bytes.Repeat([]byte("program"), 1000)
	packed, err := Pack(content)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Pack(content)
	if err != nil || !bytes.Equal(packed, again) {
		t.Errorf("the same program packs differently: %v", err)
	}
	program, err := Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := program.Bytes(); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	program.SHA256 = strings.Repeat("0", 64)
	if _, err := program.Bytes(); err == nil {
		t.Error("a wrong digest is accepted")
	}
}

func TestLinux(t *testing.T) {
	_, err := Linux("riscv64")
	if !errors.Is(err, ErrMissing) || err.Error() != "this build carries no agent for linux/riscv64: build it with `make build`" {
		t.Error(err)
	}
}

// TestOpenReadsTheHeaderOnly: a provider with many nodes asks for the digest once a node.
func TestOpenReadsTheHeaderOnly(t *testing.T) {
	content := make([]byte, 4<<20)
	for i := range content {
		content[i] = byte(i * i >> 9)
	}
	packed, err := Pack(content)
	if err != nil {
		t.Fatal(err)
	}
	source := bytes.NewReader(packed)
	if _, err := open(func() (io.ReadCloser, error) { return io.NopCloser(source), nil }); err != nil {
		t.Fatal(err)
	}
	if read := source.Size() - int64(source.Len()); read > 64<<10 {
		t.Errorf("%d of %d bytes were read for the digest", read, source.Size())
	}
}
