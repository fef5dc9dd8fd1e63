package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/disk"
)

// readers is how many files are read at once at most: one core digests about 1.5 GB/s, and the fastest
// disk of such a node gives 10 GB/s.
const readers = 8

// Digest reads files below a folder whole and tells the SHA256 of each. Real and folder are as in List.
// Bytes are counted over all files. What cannot be read is told as damage and stops no other file.
func Digest(ctx context.Context, real, folder string, list []agent.File, report func(agent.TransferEvent)) error {
	root, err := OpenFolder(real)
	if err != nil {
		return fmt.Errorf("open %s: %w", folder, err)
	}
	defer root.Close() //nolint:errcheck // Nothing was written through it.
	var lock sync.Mutex
	var total int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(readers, runtime.NumCPU()))
	for _, file := range list {
		group.Go(func() error {
			read := int64(0)
			digest, err := digestOf(ctx, root, file, func(bytes int64) {
				lock.Lock()
				defer lock.Unlock()
				if read, total = read+bytes, total+bytes; read%progressEvery < bytes {
					report(agent.TransferEvent{Bytes: total})
				}
			})
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			found := agent.File{Name: file.Name, Size: read, Link: file.Link, SHA256: digest}
			if err != nil {
				found.Damage = "cannot be read: " + err.Error()
			}
			lock.Lock()
			defer lock.Unlock()
			report(agent.TransferEvent{Bytes: total, Finished: &found})
			return nil
		})
	}
	return group.Wait()
}

// progressEvery is how many bytes of a file lie between two reports.
const progressEvery = 256 << 20

func digestOf(ctx context.Context, root *os.Root, file agent.File, read func(int64)) (string, error) {
	content := file.Name
	if file.Link != "" {
		content = path.Join(path.Dir(file.Name), file.Link)
	}
	if !filepath.IsLocal(content) {
		return "", fmt.Errorf("%q is not a path below the folder", content)
	}
	opened, err := OpenRegular(root, content)
	if err != nil {
		return "", err
	}
	defer opened.Close() //nolint:errcheck // It is only read.
	return disk.Digest(ctx, opened, read)
}

// errNotRegular is the failure of a folder, a device or a pipe in place of a file.
var errNotRegular = errors.New("not a regular file")

// OpenRegular opens a file to read. A pipe in its place is refused, where a plain open would wait for
// somebody to write into it.
func OpenRegular(root *os.Root, name string) (*os.File, error) {
	opened, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := opened.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}
