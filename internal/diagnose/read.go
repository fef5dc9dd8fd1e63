package diagnose

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// maxPiece is how much of a line is looked at at once; a longer one is looked at in pieces.
const maxPiece = 64 << 10

// Read scans one log to its end. It may be compressed by gzip, and in UTF-16 as PowerShell writes it;
// memory is bounded whatever its size.
func (s *Scan) Read(ctx context.Context, name, host string, log io.Reader) error {
	reader, err := decoded(log)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	source := s.source(name, host)
	number := 1
	for {
		piece, err := reader.ReadSlice('\n')
		if len(piece) > 0 {
			s.bytes += int64(len(piece))
			source.raw(number, strings.ToValidUTF8(strings.TrimRight(string(piece), "\r\n"), "\uFFFD"))
			if bytes.HasSuffix(piece, []byte("\n")) {
				number++
				s.lines++
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if len(piece) > 0 {
				s.lines++
			}
			source.end()
			return nil
		case err != nil:
			source.end()
			return fmt.Errorf("%s: line %d: %w", name, number, err)
		}
		if number%10000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// decoded is a log as text.
func decoded(log io.Reader) (*bufio.Reader, error) {
	reader := bufio.NewReaderSize(log, maxPiece)
	head, err := reader.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		unpacked, err := gzip.NewReader(reader)
		if err != nil {
			return nil, err
		}
		return decoded(unpacked)
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return bufio.NewReaderSize(&wide{reader: reader, bigEndian: head[0] == 0xfe}, maxPiece), nil
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X', 'Z'}), bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return nil, errors.New("it is compressed by another program than gzip: unpack it first")
	}
	return reader, nil
}

// wide reads UTF-16 as UTF-8.
type wide struct {
	reader    *bufio.Reader
	bigEndian bool
	rest      []byte
	high      uint16
}

// Read implements io.Reader.
func (w *wide) Read(into []byte) (int, error) {
	for len(w.rest) == 0 {
		var two [2]byte
		if _, err := io.ReadFull(w.reader, two[:]); err != nil {
			return 0, io.EOF
		}
		unit := uint16(two[0]) | uint16(two[1])<<8
		if w.bigEndian {
			unit = uint16(two[1]) | uint16(two[0])<<8
		}
		switch {
		case unit == 0xfeff:
		case unit >= 0xd800 && unit < 0xdc00:
			w.high = unit
		default:
			decodedRune := rune(unit)
			if utf16.IsSurrogate(decodedRune) {
				decodedRune = utf16.DecodeRune(rune(w.high), decodedRune)
			}
			w.rest = []byte(string(decodedRune))
		}
	}
	n := copy(into, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}
