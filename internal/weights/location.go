package weights

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// A commit is named by 40 hexadecimal digits; a branch or a tag is not one.
const commitPattern = `^[0-9a-f]{40}$`

// A repository is "Organisation/Name", or a bare name for the hub's oldest models.
const repoPattern = `^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$`

// Location says where a source lives on a node whose weights folder is weightsDir and whose login
// user's home is home. A path is its own folder and must be weightsDir or below it, for nothing
// else is visible in the containers; a repository has the hub cache's layout. While home is unknown
// (empty) a leading "~/" stays, and what cannot be compared without it passes. The error is a
// [*Problem].
func Location(source Source, weightsDir, home string) (Place, error) {
	root, err := expand("weights_dir", weightsDir, home)
	if err != nil {
		return Place{}, err
	}
	switch {
	case source.Path != "" && source.Repo != "":
		return Place{}, &Problem{Attribute: "repo", Summary: "Model has both a path and a repository",
			Detail: fmt.Sprintf("It is either the folder %s on the nodes or the repository %s; remove one of the two.", source.Path, source.Repo)}
	case source.Path != "":
		return pathLocation(source.Path, root, home)
	case source.Repo != "":
		return repoLocation(source, root)
	}
	return Place{}, &Problem{Attribute: "path", Summary: "Model has neither a path nor a repository",
		Detail: "Set path to a folder on the nodes, or repo and revision to a commit of a Hugging Face repository."}
}

func pathLocation(folder, root, home string) (Place, error) {
	folder, err := expand("path", folder, home)
	if err != nil {
		return Place{}, err
	}
	alike := strings.HasPrefix(folder, "~") == strings.HasPrefix(root, "~")
	if alike && !within(folder, root) {
		return Place{}, &Problem{Attribute: "path",
			Summary: fmt.Sprintf("Model path %s is not below weights_dir", folder),
			Detail: fmt.Sprintf("The containers see only %s of each node. Move the model below it, or set the cluster's weights_dir to a folder above %s.",
				root, folder)}
	}
	return Place{Folder: folder, ServePath: folder}, nil
}

func repoLocation(source Source, root string) (Place, error) {
	if !regexp.MustCompile(repoPattern).MatchString(source.Repo) {
		return Place{}, &Problem{Attribute: "repo", Summary: fmt.Sprintf("%q is not the name of a repository", source.Repo),
			Detail: `A Hugging Face repository is named "Organisation/Name", without the address of the hub.`}
	}
	if !regexp.MustCompile(commitPattern).MatchString(source.Revision) {
		return Place{}, &Problem{Attribute: "revision",
			Summary: fmt.Sprintf("Revision %q of %s is not a commit", source.Revision, source.Repo),
			Detail: fmt.Sprintf("A branch or a tag moves, and nodes that were filled on different days would hold different weights. "+
				"Give the 40 digits of a commit: the newest is the first word that `git ls-remote https://huggingface.co/%s HEAD` prints.", source.Repo)}
	}
	below := "snapshots/" + source.Revision
	folder := path.Join(root, "hub", "models--"+strings.ReplaceAll(source.Repo, "/", "--"))
	return Place{Folder: folder, Below: below, ServePath: path.Join(folder, below)}, nil
}

// Same checks that the places of all hosts serve by one path: vLLM gives the path to every rank,
// wherever it runs. The error is a [*Problem].
func Same(places map[string]Place) error {
	hosts := sortedKeys(places)
	for _, host := range hosts {
		first := hosts[0]
		if places[host].ServePath != places[first].ServePath {
			return &Problem{Attribute: "weights_dir", Summary: "Model has different paths on the nodes",
				Detail: fmt.Sprintf("It is %s on %s and %s on %s, and vLLM uses one path on every node. Set the cluster's weights_dir to an absolute path that all nodes have.",
					places[first].ServePath, first, places[host].ServePath, host)}
		}
	}
	return nil
}

// expand replaces a leading "~/" by the home and cleans the path.
func expand(attribute, folder, home string) (string, error) {
	if folder == "~" {
		folder = "~/"
	}
	if rest, found := strings.CutPrefix(folder, "~/"); found {
		if home == "" {
			return path.Join("~", path.Join("/", rest)), nil
		}
		folder = home + "/" + rest
	}
	if !path.IsAbs(folder) {
		return "", &Problem{Attribute: attribute, Summary: fmt.Sprintf("%s %q is not absolute", attribute, folder),
			Detail: `Write a path on the nodes that begins with "/", or with "~/" for the login user's home.`}
	}
	return path.Clean(folder), nil
}

// within says whether folder is root or below it.
func within(folder, root string) bool {
	return folder == root || strings.HasPrefix(folder, strings.TrimSuffix(root, "/")+"/")
}
