package embedded

import (
	"bytes"
	"errors"
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
