package embedded

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// Program is the agent for one architecture.
type Program struct {
	// SHA256 is the hex digest of the program, which names its file on a node.
	SHA256 string
	// packed opens the compressed program.
	packed func() (io.ReadCloser, error)
}

// Pack compresses a program. It has no time and no name in it, so the same program packs alike;
// its digest is the comment of the gzip header, so that a start need not unpack it to name it.
func Pack(program []byte) ([]byte, error) {
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(program)
	writer.Comment = hex.EncodeToString(digest[:])
	if _, err := writer.Write(program); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// Open reads the header of a packed program.
func Open(packed []byte) (Program, error) {
	return open(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil })
}

// open reads no more than the header: every node's start asks for it, and the whole is megabytes.
func open(packed func() (io.ReadCloser, error)) (Program, error) {
	file, err := packed()
	if err != nil {
		return Program{}, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	reader, err := gzip.NewReader(file)
	if err != nil {
		return Program{}, fmt.Errorf("read its header: %w", err)
	}
	if digest, err := hex.DecodeString(reader.Comment); err != nil || len(digest) != sha256.Size {
		return Program{}, errors.New("its header has no digest")
	}
	return Program{SHA256: reader.Comment, packed: packed}, nil
}

// Bytes unpacks the program and proves it by its digest.
func (p Program) Bytes() ([]byte, error) {
	file, err := p.packed()
	if err != nil {
		return nil, fmt.Errorf("open the embedded agent: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	reader, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("unpack the embedded agent: %w", err)
	}
	program, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("unpack the embedded agent: %w", err)
	}
	if digest := sha256.Sum256(program); hex.EncodeToString(digest[:]) != p.SHA256 {
		return nil, errors.New("the embedded agent does not match its digest")
	}
	return program, nil
}
