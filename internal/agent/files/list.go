package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// walker lists one folder.
type walker struct {
	ctx     context.Context //nolint:containedctx // It lives as long as the one call that makes it.
	root    *os.Root
	real    string
	listing *agent.Listing
}

// List walks a folder. Real is where it lies, folder how the listing calls it. Free space is the
// caller's to fill in.
func List(ctx context.Context, real, folder string, request agent.ListRequest) (agent.Listing, error) {
	listing := agent.Listing{Folder: folder, Files: []agent.File{}}
	below := path.Clean(request.Below)
	if !filepath.IsLocal(below) {
		return listing, fmt.Errorf("%q is not a path below the folder", request.Below)
	}
	root, err := OpenFolder(real)
	if errors.Is(err, fs.ErrNotExist) {
		return listing, nil
	}
	if err != nil {
		return listing, fmt.Errorf("open %s: %w", folder, err)
	}
	defer root.Close() //nolint:errcheck // Nothing was written through it.
	info, err := root.Stat(below)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return listing, nil
	case err != nil:
		return listing, fmt.Errorf("look at %s: %w", path.Join(folder, below), err)
	case !info.IsDir():
		return listing, fmt.Errorf("%s is not a folder", path.Join(folder, below))
	}
	listing.Exists = true
	w := &walker{ctx: ctx, root: root, real: real, listing: &listing}
	if err := w.folder(below, below, nil); err != nil {
		return listing, fmt.Errorf("list %s: %w", path.Join(folder, below), err)
	}
	slices.SortFunc(listing.Files, func(a, b agent.File) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(listing.Shards)
	listing.Shards = slices.Compact(listing.Shards)
	return listing, nil
}

// folder walks one folder. Name is how it is listed, at the path that is opened; they differ below a
// linked folder. Above are the folders that lead here, so that a circle of links ends.
func (w *walker) folder(name, at string, above []fs.FileInfo) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	opened, err := w.root.Open(at)
	if err != nil {
		return err
	}
	defer opened.Close() //nolint:errcheck // It is only read.
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(above, func(other fs.FileInfo) bool { return os.SameFile(info, other) }) {
		w.add(agent.File{Name: name, Damage: "link leads in a circle"})
		return nil
	}
	entries, err := opened.ReadDir(-1)
	if err != nil {
		return err
	}
	above = append(slices.Clip(above), info)
	for _, entry := range entries {
		// Unfinished downloads of huggingface_hub lie beside the blobs as *.incomplete.
		if strings.HasPrefix(entry.Name(), ".") || strings.HasSuffix(entry.Name(), ".incomplete") {
			continue
		}
		if err := w.entry(path.Join(name, entry.Name()), path.Join(at, entry.Name()), entry.Type(), above); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(name, at string, kind fs.FileMode, above []fs.FileInfo) error {
	switch {
	case kind.IsDir():
		return w.folder(name, at, above)
	case kind.IsRegular():
		info, err := w.root.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // It was removed since the folder was read.
		}
		if err != nil {
			return err
		}
		w.file(agent.File{Name: name}, at, info)
		return nil
	case kind&fs.ModeSymlink != 0:
		return w.link(name, at, above)
	}
	return nil
}

// link follows a symbolic link as long as it stays in the folder.
func (w *walker) link(name, at string, above []fs.FileInfo) error {
	target, err := w.root.Readlink(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	content := path.Join(path.Dir(at), target)
	if path.IsAbs(target) {
		// An absolute link that stays inside is as good as the relative one.
		if content, err = filepath.Rel(w.real, target); err != nil {
			content = ".."
		}
	}
	file := agent.File{Name: name}
	info, err := w.root.Stat(content)
	switch {
	case !filepath.IsLocal(content) || Escapes(err):
		file.Damage = "link leaves the folder: " + target
	case errors.Is(err, fs.ErrNotExist):
		file.Damage = "link to a file that is not there: " + target
	case err != nil:
		file.Damage = "link to " + target + ": " + err.Error()
	case info.IsDir():
		return w.folder(name, content, above)
	case info.Mode().IsRegular():
		// Below a linked folder the target is relative to another place than the name.
		if name == at {
			if file.Link, err = filepath.Rel(path.Dir(name), content); err != nil {
				return err
			}
		}
		w.file(file, content, info)
		return nil
	default:
		return nil
	}
	w.add(file)
	return nil
}

// file lists a regular file and checks it.
func (w *walker) file(file agent.File, at string, info fs.FileInfo) {
	file.Size, file.Modified = info.Size(), info.ModTime().UnixNano()
	damage, err := w.check(file, at)
	if err != nil {
		damage = "cannot be read: " + err.Error()
	}
	file.Damage = damage
	w.add(file)
}

func (w *walker) add(file agent.File) {
	w.listing.Files = append(w.listing.Files, file)
}

// check looks into the files whose structure tells whether they are whole.
func (w *walker) check(file agent.File, at string) (string, error) {
	shard := strings.HasSuffix(file.Name, ".safetensors")
	index := strings.HasSuffix(file.Name, ".safetensors.index.json")
	if !shard && !index {
		return "", nil
	}
	opened, err := w.root.Open(at)
	if err != nil {
		return "", err
	}
	defer opened.Close() //nolint:errcheck // It is only read.
	if shard {
		return CheckSafetensors(opened, file.Size)
	}
	shards, damage, err := checkIndex(opened, file.Size, path.Dir(file.Name))
	w.listing.Shards = append(w.listing.Shards, shards...)
	return damage, err
}
