// Package disk is what the agent asks of a file system beyond reading and writing: the space that
// is left, and page cache given back behind a copy. GB10's GPU shares the host's memory, and CUDA
// counts page cache as used.
package disk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Chunk is the size of a read or write, in bytes.
const Chunk = 1 << 20

// Free gives the bytes that the user may still write at a path, by the nearest parent that exists.
func Free(path string) (int64, error) {
	for {
		var stat unix.Statfs_t
		err := unix.Statfs(path, &stat)
		parent := filepath.Dir(path)
		switch {
		case err == nil:
			blocks := min(stat.Bavail, 1<<62/uint64(max(stat.Bsize, 1)))
			return int64(blocks) * stat.Bsize, nil //nolint:gosec // The limit above fits.
		case errors.Is(err, fs.ErrNotExist) && parent != path:
			path = parent
		default:
			return 0, &fs.PathError{Op: "statfs", Path: path, Err: err}
		}
	}
}

// Evict gives back the page cache of a part of a file. Pages that are still to be written stay.
// It is a hint: a file system that does not take it loses nothing but memory.
func Evict(file *os.File, offset, length int64) {
	_ = unix.Fadvise(int(file.Fd()), offset, length, unix.FADV_DONTNEED)
}

// Digest reads a whole file and gives its sha256 in hex. Read is told of each part, in bytes.
func Digest(ctx context.Context, file *os.File, read func(int64)) (string, error) {
	hash := sha256.New()
	buffer := make([]byte, Chunk)
	for offset := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return "", context.Cause(ctx)
		}
		n, err := file.ReadAt(buffer, offset)
		hash.Write(buffer[:n])
		Evict(file, offset, int64(n))
		offset += int64(n)
		read(int64(n))
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(hash.Sum(nil)), nil
		}
		if err != nil {
			return "", fmt.Errorf("read at byte %d: %w", offset, err)
		}
	}
}

// WriteBehind has the kernel write a growing file steadily and gives its cache back, so that a copy
// keeps two windows of cache and its final fsync has little left to do.
type WriteBehind struct {
	File *os.File
	// started is up to where writing was asked for, evicted up to where the cache is given back.
	started, evicted int64
}

// window is the part of a file, in bytes, that is handed to the kernel at once.
const window = 32 << 20

// Wrote tells that the file has its content up to offset.
func (w *WriteBehind) Wrote(offset int64) {
	if offset < w.started {
		w.started, w.evicted = 0, 0
	}
	if offset-w.started < window {
		return
	}
	descriptor := int(w.File.Fd())
	// Both are hints, as in Evict: what they do not do, the fsync at the end does.
	_ = unix.SyncFileRange(descriptor, w.started, offset-w.started, unix.SYNC_FILE_RANGE_WRITE)
	if w.started > w.evicted {
		_ = unix.SyncFileRange(descriptor, w.evicted, w.started-w.evicted,
			unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
		Evict(w.File, w.evicted, w.started-w.evicted)
		w.evicted = w.started
	}
	w.started = offset
}
