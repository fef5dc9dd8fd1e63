package transfer

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/disk"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/files"
)

// lockTimeout is how long a file may still be held by a transfer that was cancelled.
const lockTimeout = 5 * time.Second

// errBusy is the failure of a file that another transfer is writing.
var errBusy = errors.New("another transfer is writing it")

// openPartial opens an unfinished file for this transfer alone, also against other processes.
func openPartial(ctx context.Context, root *os.Root, name string) (*os.File, error) {
	for deadline := time.Now().Add(lockTimeout); ; {
		// Two files of one transfer make the folder at once, and Root.MkdirAll tells the loser that it exists.
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
		if errors.Is(err, fs.ErrNotExist) && time.Now().Before(deadline) {
			continue // Another transfer removed the folder that was empty.
		}
		if err != nil {
			return nil, err
		}
		if err := lock(ctx, file, deadline); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		// Whoever held the lock may have moved or removed the file that was opened.
		opened, err := file.Stat()
		if named, nameErr := root.Lstat(name); err == nil && nameErr == nil && os.SameFile(opened, named) {
			return file, nil
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, errBusy
		}
	}
}

// lock takes the file's lock, which ends with the file or its process.
func lock(ctx context.Context, file *os.File, deadline time.Time) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil, errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOLCK):
			// A file system without locks leaves it to the user not to run two at once.
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return os.NewSyscallError("flock", err)
		case time.Now().After(deadline):
			return errBusy
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Clean removes the unfinished copies below a folder, and nothing else.
func Clean(ctx context.Context, real, folder string) error {
	root, err := files.OpenFolder(real)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", folder, err)
	}
	defer root.Close() //nolint:errcheck // Nothing is written through it.
	info, err := root.Lstat(files.Partial)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() {
		err = idle(ctx, root)
	}
	if err == nil {
		err = root.RemoveAll(files.Partial)
	}
	if err != nil {
		return fmt.Errorf("clean %s: %w", path.Join(folder, files.Partial), err)
	}
	return nil
}

// idle waits until no transfer writes below the folder of unfinished copies.
func idle(ctx context.Context, root *os.Root) error {
	deadline := time.Now().Add(lockTimeout)
	return fs.WalkDir(root.FS(), files.Partial, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // It is only locked.
		if err := lock(ctx, file, deadline); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimPrefix(name, files.Partial+"/"), err)
		}
		return nil
	})
}

// removeEmpty removes folders of unfinished copies that are empty now, from the inside out. One
// that is not empty, or is gone, ends it: that is no failure.
func removeEmpty(root *os.Root, folder string) {
	for ; folder != "." && root.Remove(folder) == nil; folder = path.Dir(folder) {
		continue
	}
}

// syncFolder makes a rename last over a loss of power.
func syncFolder(root *os.Root, folder string) error {
	opened, err := root.Open(folder)
	if err != nil {
		return err
	}
	err = opened.Sync()
	if errors.Is(err, unix.EINVAL) {
		err = nil // Some network file systems have nothing to sync in a folder.
	}
	return errors.Join(err, opened.Close())
}

// digestPrefix feeds the first bytes of a file to a digest.
func digestPrefix(ctx context.Context, file *os.File, length int64, sum hash.Hash) error {
	buffer := make([]byte, disk.Chunk)
	for offset := int64(0); offset < length; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := file.ReadAt(buffer[:min(int64(len(buffer)), length-offset)], offset)
		sum.Write(buffer[:n])
		disk.Evict(file, offset, int64(n))
		offset += int64(n)
		if err != nil && offset < length {
			return fmt.Errorf("read %s at byte %d: %w", filepath.Base(file.Name()), offset, err)
		}
	}
	return nil
}
