package transfer

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/files"
)

// unit is one content that moves, with the entries of the folder that show it: the file itself, or
// the links to it. Two links of a hub cache to one blob are one unit.
type unit struct {
	// name is the content's path below the folder.
	name    string
	size    int64
	digest  string
	entries []agent.File
	// counted are the bytes that progress has of it: what is lost with a connection is taken back.
	counted int64
	// link and done are of the connection that brings it now, at the receiver.
	link *link
	done chan struct{}
}

// plan groups the files of a request. It refuses every name that could lead out of the folder, or
// into the part of it that is ours; links that already lie there are the file system's to refuse.
func plan(list []agent.File) ([]*unit, error) {
	var units []*unit
	known := map[string]*unit{}
	for _, file := range list {
		content := file.Name
		if file.Link != "" {
			content = path.Join(path.Dir(file.Name), file.Link)
		}
		for _, name := range []string{file.Name, content} {
			if err := checkName(name); err != nil {
				return nil, err
			}
		}
		if path.IsAbs(file.Link) {
			return nil, failed(agent.TransferFailed, "%q is a link to an absolute path", file.Name)
		}
		one, found := known[content]
		if !found {
			one = &unit{name: content, size: file.Size, digest: file.SHA256}
			known[content] = one
			units = append(units, one)
		}
		if one.digest == "" {
			one.digest = file.SHA256
		}
		if one.size != file.Size || (file.SHA256 != "" && file.SHA256 != one.digest) {
			return nil, failed(agent.TransferFailed, "%q is asked for twice, with different contents", content)
		}
		one.entries = append(one.entries, file)
	}
	return units, nil
}

func checkName(name string) error {
	first, _, _ := strings.Cut(name, "/")
	if !filepath.IsLocal(name) || path.Clean(name) != name || name == "." || first == files.Partial || strings.ContainsRune(name, 0) {
		return failed(agent.TransferFailed, "%q is not the name of a file below the folder", name)
	}
	return nil
}

// total is the sum of the sizes.
func total(units []*unit) int64 {
	var sum int64
	for _, one := range units {
		sum += one.size
	}
	return sum
}
