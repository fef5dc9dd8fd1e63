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
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// walker lists one folder.
type walker struct {
	ctx     context.Context //nolint:containedctx // It lives as long as the one call that makes it.
	root    *os.Root
	real    string
	listing *agent.Listing
	known   map[string]string
	// looks are what is left to do when all names are known: a look into a file, by its index in the listing.
	looks []look
}

// look is a file that is to be opened.
type look struct {
	index int
	at    string
}

// lookers is how many files are looked into at once: the headers of a large model are some hundred
// kilobytes of JSON each, and the agent's memory is bounded.
const lookers = 4

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
	w := &walker{ctx: ctx, root: root, real: real, listing: &listing, known: request.Known}
	if err := w.folder(below, below, nil); err != nil {
		return listing, fmt.Errorf("list %s: %w", path.Join(folder, below), err)
	}
	if err := w.look(ctx); err != nil {
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

// file lists a regular file, to be looked into later.
func (w *walker) file(file agent.File, at string, info fs.FileInfo) {
	file.Size, file.Modified, file.Stamp = info.Size(), info.ModTime().UnixNano(), stamp(info)
	if known := w.known[file.Name]; known == "" || known != file.Stamp {
		w.looks = append(w.looks, look{len(w.listing.Files), at})
	}
	w.add(file)
}

// add lists an entry. A name that JSON cannot carry could be asked for under no name.
func (w *walker) add(file agent.File) {
	if !utf8.ValidString(file.Name) {
		file.Name, file.Damage = strings.ToValidUTF8(file.Name, "\ufffd"), "its name is not valid UTF-8"
	}
	w.listing.Files = append(w.listing.Files, file)
}

// look looks into all files, some at once.
func (w *walker) look(ctx context.Context) error {
	var lock sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookers)
	for _, one := range w.looks {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			file := &w.listing.Files[one.index]
			shards, err := w.check(file, one.at)
			if err != nil {
				file.Damage = "cannot be read: " + err.Error()
			}
			lock.Lock()
			defer lock.Unlock()
			w.listing.Shards = append(w.listing.Shards, shards...)
			return nil
		})
	}
	return group.Wait()
}

// check takes the fingerprint, and looks into the files whose structure tells whether they are whole. It
// gives the shards that an index names.
func (w *walker) check(file *agent.File, at string) (shards []string, err error) {
	opened, err := OpenRegular(w.root, at)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // It is only read.
	damage := ""
	switch {
	case strings.HasSuffix(file.Name, ".safetensors"):
		damage, err = CheckSafetensors(opened, file.Size)
	case strings.HasSuffix(file.Name, ".safetensors.index.json"):
		shards, damage, err = checkIndex(opened, file.Size, path.Dir(file.Name))
	}
	if err == nil {
		file.Fingerprint, err = Fingerprint(opened, file.Size)
	}
	if file.Damage == "" {
		file.Damage = damage
	}
	return shards, err
}
