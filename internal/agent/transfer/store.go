package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/disk"
)

// unit takes one content and puts it in place.
func (r *receiver) unit(ctx context.Context, link *link, one *unit, modified int64) error {
	partial := partialName(one.name)
	file, err := openPartial(ctx, r.root, partial)
	if err != nil {
		return r.end.fail("write", one.name, err)
	}
	defer file.Close() //nolint:errcheck // After the sync nothing is left to fail.
	digest, err := r.content(ctx, link, one, file)
	if err != nil {
		var wrong *mismatchError
		if !errors.As(err, &wrong) {
			return r.explain("receive", one.name, err)
		}
		// What is wrong as a whole is no use to the next try.
		err = failed(agent.TransferMismatch, "%s/%s: %w", r.end.Folder, one.name, wrong)
		if removeErr := r.root.Remove(partial); removeErr != nil {
			err = errors.Join(err, r.end.fail("remove the unfinished", one.name, removeErr))
		}
		return err
	}
	if err := file.Sync(); err != nil {
		return r.end.fail("write", one.name, err)
	}
	disk.Evict(file, 0, 0)
	if err := r.place(one, partial, time.Unix(0, modified)); err != nil {
		return err
	}
	if err := link.send(message{Stored: true}); err != nil {
		return r.explain("confirm", one.name, err)
	}
	r.progress.finished(one, modified, digest)
	return nil
}

// mismatchError is a content that is not what was promised.
type mismatchError struct{ what, got, want string }

// Error implements error.
func (e *mismatchError) Error() string {
	return fmt.Sprintf("sha256 is %s, %s %s", e.got, e.what, e.want)
}

// content receives the bytes behind what is there, and compares the digests.
func (r *receiver) content(ctx context.Context, link *link, one *unit, file *os.File) (string, error) {
	sum := sha256.New()
	from, err := r.resume(ctx, link, one, file, sum)
	if err != nil {
		return "", err
	}
	if err := r.bytes(ctx, link, one, file, sum, from); err != nil {
		return "", err
	}
	trailer, err := link.receive(r.end.stallTimeout())
	if err != nil {
		return "", err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	switch {
	case trailer.Proof != link.proof(one.name, one.size, trailer.SHA256):
		return "", &mismatchError{"and its proof is not by", digest, "the secret of this transfer"}
	case trailer.SHA256 != digest:
		return "", &mismatchError{"the sender read", digest, trailer.SHA256}
	case one.digest != "" && one.digest != digest:
		return "", &mismatchError{"expected is", digest, one.digest}
	}
	return digest, nil
}

// resume tells the sender how much is there, and feeds it to the digest while the sender does the same.
func (r *receiver) resume(ctx context.Context, link *link, one *unit, file *os.File, sum hash.Hash) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	offset := info.Size()
	if offset > one.size {
		offset = 0
	}
	if err := link.send(message{Offset: &offset}); err != nil {
		return 0, err
	}
	from := int64(0)
	if offset > 0 {
		if err := digestPrefix(ctx, file, offset, sum); err != nil {
			return 0, err
		}
		if err := link.send(message{Prefix: hex.EncodeToString(sum.Sum(nil))}); err != nil {
			return 0, err
		}
		answer, err := link.receive(r.end.patience(offset))
		if err != nil {
			return 0, err
		}
		if answer.From == nil || (*answer.From != 0 && *answer.From != offset) {
			return 0, errors.New("the sender goes on from no usable offset")
		}
		if from = *answer.From; from == 0 {
			sum.Reset()
		}
	}
	r.progress.add(one, from)
	return from, file.Truncate(from)
}

// bytes writes the content from an offset on.
func (r *receiver) bytes(ctx context.Context, link *link, one *unit, file *os.File, sum hash.Hash, from int64) error {
	behind := disk.WriteBehind{File: file}
	buffer := make([]byte, disk.Chunk)
	filled := 0
	for offset := from; offset < one.size; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := link.read(buffer[filled:min(int64(len(buffer)), one.size-offset)])
		filled += n
		full := filled == len(buffer) || offset+int64(filled) == one.size
		if full || err != nil {
			// What arrived before a failure is written too: the next try goes on from there.
			sum.Write(buffer[:filled])
			if _, err := file.WriteAt(buffer[:filled], offset); err != nil {
				return err
			}
			offset += int64(filled)
			behind.Wrote(offset)
			r.progress.add(one, int64(filled))
			filled = 0
		}
		if errors.Is(err, io.EOF) && offset < one.size {
			return fmt.Errorf("at byte %d of %d: %w", offset, one.size, io.ErrUnexpectedEOF)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// place moves a whole file to its name and makes the links to it. What was there before is replaced
// in the same instant.
func (r *receiver) place(one *unit, partial string, modified time.Time) error {
	if err := r.root.Chtimes(partial, modified, modified); err != nil {
		return r.end.fail("set the time of", one.name, err)
	}
	folder := path.Dir(one.name)
	if err := r.root.MkdirAll(folder, 0o755); err != nil {
		return r.end.fail("make", folder, err)
	}
	if err := r.root.Rename(partial, one.name); err != nil {
		return r.end.fail("replace", one.name, err)
	}
	if err := syncFolder(r.root, folder); err != nil {
		return r.end.fail("write", folder, err)
	}
	for _, entry := range one.entries {
		if entry.Link == "" {
			continue
		}
		if err := r.link(entry); err != nil {
			return err
		}
	}
	removeEmpty(r.root, path.Dir(partial))
	return nil
}

// link makes a symbolic link in one instant, by a rename of its own.
func (r *receiver) link(entry agent.File) error {
	if target, err := r.root.Readlink(entry.Name); err == nil && target == entry.Link {
		return nil
	}
	fresh := partialName(entry.Name) + ".link"
	for _, folder := range []string{path.Dir(fresh), path.Dir(entry.Name)} {
		if err := r.root.MkdirAll(folder, 0o755); err != nil {
			return r.end.fail("make", folder, err)
		}
	}
	if err := r.root.RemoveAll(fresh); err != nil {
		return r.end.fail("remove the unfinished", entry.Name, err)
	}
	if err := r.root.Symlink(entry.Link, fresh); err != nil {
		return r.end.fail("link", entry.Name, err)
	}
	if err := r.root.Rename(fresh, entry.Name); err != nil {
		return r.end.fail("replace", entry.Name, err)
	}
	removeEmpty(r.root, path.Dir(fresh))
	if err := syncFolder(r.root, path.Dir(entry.Name)); err != nil {
		return r.end.fail("write", path.Dir(entry.Name), err)
	}
	return nil
}
