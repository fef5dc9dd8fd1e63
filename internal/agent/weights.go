package agent

// File is one file of a model, relative to the folder that was asked for.
type File struct {
	// Name is the slash-separated path below the folder.
	Name string `json:"name"`
	// Size in bytes, of the content behind a link.
	Size int64 `json:"size"`
	// Link is the relative target when the entry is a symbolic link, as in the hub cache's
	// snapshots; it never leaves the folder.
	Link string `json:"link,omitempty"`
	// Modified is the content's modification time in nanoseconds since 1970.
	Modified int64 `json:"modified,omitempty"`
	// Damage says what is wrong with the file's own structure ("header ends beyond the file",
	// "120 of 200 bytes of tensors"); empty if nothing is or nothing can be told.
	Damage string `json:"damage,omitempty"`
	// SHA256 is the hex digest of the content as far as it is known: a transfer and Digest make it, a
	// listing does not.
	SHA256 string `json:"sha256,omitempty"`
	// Stamp changes with every write to the content, whatever time the writer sets on it: inode, time of
	// modification and time of change of the content behind a link. It is of use to compare only.
	Stamp string `json:"stamp,omitempty"`
	// Fingerprint is a digest of a sample of the content: equal for equal contents, and different for
	// models of one shape with other values. A flipped bit needs the SHA256.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// DigestRequest asks for the SHA256 of files, which are read whole.
type DigestRequest struct {
	// Folder as in ListRequest.
	Folder string `json:"folder"`
	// Files by Name and Link, as a listing gave them.
	Files []File `json:"files"`
}

// ListRequest asks for the files of a folder.
type ListRequest struct {
	// Folder is an absolute path; a leading "~/" is the login user's home.
	Folder string `json:"folder"`
	// Below limits the walk to one path below Folder, such as "snapshots/<revision>"; empty walks all.
	Below string `json:"below,omitempty"`
	// Known are stamps by the name of a file: one that still has its stamp is listed without a look into
	// it, with neither Damage nor Fingerprint.
	Known map[string]string `json:"known,omitempty"`
}

// Listing is the answer: every regular file (links followed), sorted by name. Hidden files and
// unfinished copies are left out. safetensors headers are read and checked.
type Listing struct {
	// Folder is the absolute path that was walked.
	Folder string `json:"folder"`
	// Exists is false if there is no such folder.
	Exists bool   `json:"exists"`
	Files  []File `json:"files"`
	// Shards are the files that the *.safetensors.index.json files in the walk name in their
	// weight_map, as paths below Folder like File.Name, sorted, each once, there or not. An index
	// that is no JSON object with a weight_map is a File with Damage.
	Shards []string `json:"shards,omitempty"`
	// FreeBytes is what the file system (of the nearest existing parent) has left for this user.
	FreeBytes int64 `json:"free_bytes"`
}

// ReceiveRequest opens a listener for one transfer.
type ReceiveRequest struct {
	// Folder to write below; made if missing.
	Folder string `json:"folder"`
	// Address is the node's own address to listen on, usually the fabric's. The port is chosen.
	Address string `json:"address"`
	// Secret authenticates both ends once, 32 random bytes in hex.
	Secret string `json:"secret"`
	// Encrypt takes nothing but connections under TLS 1.3, with keys made of the secret.
	Encrypt bool   `json:"encrypt,omitempty"`
	Files   []File `json:"files"`
}

// SendRequest connects to a listener and sends files.
type SendRequest struct {
	Folder string `json:"folder"`
	// Source is the own address to send from, Target the listener's address with port.
	Source string `json:"source"`
	Target string `json:"target"`
	Secret string `json:"secret"`
	// Encrypt is as in ReceiveRequest.
	Encrypt bool   `json:"encrypt,omitempty"`
	Files   []File `json:"files"`
}

// TransferEvent is one line of a transfer's progress; the stream ends with Done or Error.
type TransferEvent struct {
	// Listening is the receiver's address with port, in its first event.
	Listening string `json:"listening,omitempty"`
	// Bytes done so far in this transfer.
	Bytes int64 `json:"bytes,omitempty"`
	// Finished is a file that is in place, verified, with its SHA256.
	Finished *File `json:"finished,omitempty"`
	Done     bool  `json:"done,omitempty"`
	// Error ends the transfer; Code is one of the Transfer… constants.
	Error string `json:"error,omitempty"`
	Code  string `json:"code,omitempty"`
}

// The classes of transfer failures.
const (
	TransferNoSpace  = "no_space"
	TransferDenied   = "denied"
	TransferConnect  = "connect"
	TransferAuth     = "auth"
	TransferMismatch = "mismatch"
	TransferStalled  = "stalled"
	TransferFailed   = "failed"
)
