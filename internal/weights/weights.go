// Package weights keeps a model's files equal on every node: what should be there (the manifest),
// what is there (the state per host), and the copies that make it so.
package weights

import "github.com/spark-stack/terraform-provider-spark/internal/agent"

// Source says where a model lives on the nodes.
type Source struct {
	// Path is an absolute folder on the nodes, the same on each. Empty with Repo.
	Path string
	// Repo is a Hugging Face repository, "Qwen/Qwen3.5-122B-A10B-FP8", with Revision a commit.
	Repo     string
	Revision string
}

// Manifest is the accepted content of a model: every file with its size and, once a copy or a
// verification read it, its digest.
type Manifest struct {
	Files []agent.File `json:"files"`
	// Seen is, by host and file, the stamp under which the file was last found as accepted, or, behind
	// an exclamation mark, as something else. A file that has its stamp still need not be read.
	Seen map[string]map[string]string `json:"seen,omitempty"`
	// Renews is the content that was accepted before, while the new one is still to be found.
	Renews []agent.File `json:"-"`
}

// Renew is a manifest that is to be found again: what differs from this one is taken before what equals it.
func (m Manifest) Renew() Manifest { return Manifest{Renews: m.Files} }

// Bytes is the sum of the sizes.
func (m Manifest) Bytes() int64 {
	var total int64
	for _, file := range m.Files {
		total += file.Size
	}
	return total
}

// Place is where a source lives on one node.
type Place struct {
	// Folder is the root of all its files, the same argument for listing, sending and receiving.
	Folder string
	// Below limits a listing to the files that are served: "snapshots/<revision>" in the hub cache.
	Below string
	// ServePath is what `vllm serve` is given.
	ServePath string
}

// Problem is something that makes a source or a folder unusable, in words for the user.
type Problem struct {
	// Attribute that is to blame, such as "path" or "revision" of the model; empty if a host is.
	Attribute string
	// Summary is one sentence, Detail says why and what to do next.
	Summary, Detail string
}

// Error implements error.
func (p *Problem) Error() string { return p.Summary + ": " + p.Detail }

// Condition is a word for the weights on one host.
type Condition string

// The conditions.
const (
	Complete   Condition = "complete"
	Incomplete Condition = "incomplete"
	Missing    Condition = "missing"
)

// State is what one host has of a manifest.
type State struct {
	Condition Condition
	// Files and Bytes that are as they should be.
	Files int
	Bytes int64
	// Bad are the names of files that are missing or damaged, with the reason.
	Bad map[string]string
}
