package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"syscall"
)

const (
	// wholeBelow is the size, in bytes, up to which a fingerprint is of the whole content: configuration,
	// chat templates and most tokenizers.
	wholeBelow = 1 << 20
	// samples of sampleSize bytes are read of larger files, spread evenly from the first byte to the last.
	// 16 reads in each of 40 shards take a tenth of a second on the slowest disk of such a node.
	samples    = 16
	sampleSize = 4 << 10
)

// Fingerprint samples a content of a size: 32 hexadecimal digits that are equal for equal contents, and
// differ for another model of the same shape, whose values differ everywhere.
func Fingerprint(content io.ReaderAt, size int64) (string, error) {
	sum := sha256.New()
	sum.Write([]byte(strconv.FormatInt(size, 10) + "\n"))
	count, length := int64(samples), int64(sampleSize)
	if size <= wholeBelow {
		count, length = 1, size
	}
	buffer := make([]byte, length)
	for i := range count {
		offset := int64(0)
		if count > 1 {
			offset = (size - length) / (count - 1) * i
		}
		if i > 0 && i == count-1 {
			offset = size - length
		}
		if n, err := content.ReadAt(buffer, offset); int64(n) < length {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return "", fmt.Errorf("read at byte %d: %w", offset, err)
		}
		sum.Write(buffer)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// stamp changes with every write to a file. The time of change is the kernel's own: a writer that
// restores the time of modification, as rsync does, cannot restore it.
func stamp(info fs.FileInfo) string {
	system, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return ""
	}
	base := func(n int64) string { return strconv.FormatInt(n, 36) }
	return strconv.FormatUint(system.Ino, 36) + "." + base(info.ModTime().UnixNano()) + "." + base(system.Ctim.Nano())
}
