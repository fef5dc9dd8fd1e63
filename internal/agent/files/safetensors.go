package files

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
)

// maxHeader is the limit of a safetensors header, in bytes, that the format's own library sets.
const maxHeader = 100_000_000

// tensor is one entry of a safetensors header.
type tensor struct {
	DType   string    `json:"dtype"`
	Shape   []uint64  `json:"shape"`
	Offsets *[2]int64 `json:"data_offsets"`
}

// typeBits are the sizes of the format's element types, in bits. A type that is not listed here is
// newer than this table: its tensors are checked by their offsets alone.
func typeBits(name string) uint64 {
	switch name {
	case "F4", "F6_E2M3", "F6_E3M2":
		// Packed types: shapes are counted differently by different writers.
		return 0
	case "BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0":
		return 8
	case "U16", "I16", "F16", "BF16":
		return 16
	case "U32", "I32", "F32":
		return 32
	case "U64", "I64", "F64", "C64":
		return 64
	}
	return 0
}

// CheckSafetensors says what is wrong with a safetensors file of a size, by its header alone; empty
// if nothing is. A shard cut behind its header would load as zeros without an error.
func CheckSafetensors(content io.ReaderAt, size int64) (string, error) {
	if size < 8 {
		return fmt.Sprintf("%d bytes, less than the 8 of the header's length", size), nil
	}
	var prefix [8]byte
	if _, err := content.ReadAt(prefix[:], 0); err != nil {
		return "", fmt.Errorf("read the header's length: %w", err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > maxHeader {
		return fmt.Sprintf("header of %d bytes, over the format's limit of %d", length, maxHeader), nil
	}
	if end := 8 + int64(length); end > size {
		return fmt.Sprintf("header ends at byte %d, beyond the file's %d", end, size), nil
	}
	header := make([]byte, length)
	if _, err := io.ReadFull(io.NewSectionReader(content, 8, int64(len(header))), header); err != nil {
		return "", fmt.Errorf("read the header: %w", err)
	}
	return checkHeader(header, size-8-int64(len(header))), nil
}

// checkHeader compares the header with the number of bytes that follow it.
func checkHeader(header []byte, data int64) string {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(header, &entries); err != nil {
		return fmt.Sprintf("header of %d bytes is not a JSON object: %v", len(header), err)
	}
	type span struct {
		name       string
		begin, end int64
	}
	spans := make([]span, 0, len(entries))
	for name, text := range entries {
		if name == "__metadata__" {
			continue
		}
		var entry tensor
		if err := json.Unmarshal(text, &entry); err != nil || entry.Offsets == nil {
			return fmt.Sprintf("header describes tensor %q without usable data_offsets", name)
		}
		begin, end := entry.Offsets[0], entry.Offsets[1]
		if begin < 0 || end < begin {
			return fmt.Sprintf("tensor %q spans bytes %d to %d", name, begin, end)
		}
		if want, known := entry.bytes(); known && want != uint64(end-begin) { //nolint:gosec // It is not negative, as checked above.
			return fmt.Sprintf("tensor %q has %d bytes, its shape needs %d", name, end-begin, want)
		}
		spans = append(spans, span{name, begin, end})
	}
	slices.SortFunc(spans, func(a, b span) int {
		if a.begin != b.begin {
			return cmp.Compare(a.begin, b.begin)
		}
		return cmp.Compare(a.end, b.end)
	})
	total := int64(0)
	for _, span := range spans {
		if span.begin != total {
			return fmt.Sprintf("tensor %q begins at byte %d where the one before ends at %d", span.name, span.begin, total)
		}
		total = span.end
	}
	switch {
	case data < total:
		return fmt.Sprintf("%d of %d bytes of tensors", data, total)
	case data > total:
		return fmt.Sprintf("%d bytes of tensors where the header describes %d", data, total)
	}
	return ""
}

// bytes is the size that the shape asks for; known is false for types that cannot be told.
func (t tensor) bytes() (size uint64, known bool) {
	size = typeBits(t.DType) / 8
	if size == 0 {
		return 0, false
	}
	for _, dimension := range t.Shape {
		high, low := bits.Mul64(size, dimension)
		if high != 0 {
			return math.MaxUint64, true
		}
		size = low
	}
	return size, true
}
