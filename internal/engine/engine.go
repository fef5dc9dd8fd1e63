// Package engine talks to the Docker engine of one machine. It offers the dozen calls that the
// product uses behind an interface of our own, because the client library is still v0 and breaks
// in minor releases.
package engine

import (
	"context"
	"errors"
	"time"
)

// MinimumAPIVersion is the lowest Docker API version that we speak: 1.41 (engine 20.10), the
// version of Debian 12's package. Device requests exist since 1.40.
const MinimumAPIVersion = "1.41"

// DefaultSocket is where a Docker engine listens unless it was told otherwise.
const DefaultSocket = "/var/run/docker.sock"

// ErrNotFound says that the engine answered and has no such container, image or volume.
var ErrNotFound = errors.New("not found")

// ErrUnlabelled says that a volume was left alone because somebody else made it.
var ErrUnlabelled = errors.New("the volume was not made by this provider")

// Engine is the part of a Docker engine that the product uses. Every call obeys its context.
type Engine interface {
	// Version negotiates the API version once; it fails with an [Error] of kind TooOld below
	// MinimumAPIVersion.
	Version(ctx context.Context) (Version, error)
	// Image returns what the engine knows of an image, by reference or id; ErrNotFound if nothing.
	Image(ctx context.Context, reference string) (Image, error)
	// Containers returns the inspected containers, running or not, that carry the label (any value)
	// or whose name starts with one of the prefixes, sorted by name.
	Containers(ctx context.Context, label string, namePrefixes ...string) ([]Container, error)
	// Container inspects one container by name or id; ErrNotFound if there is none.
	Container(ctx context.Context, nameOrID string) (Container, error)
	// Create makes a container and returns its id. It never pulls.
	Create(ctx context.Context, spec ContainerSpec) (string, error)
	// Start starts a created or stopped container.
	Start(ctx context.Context, id string) error
	// Remove stops a container within grace, then removes it with its anonymous volumes.
	// A container that is gone or on its way out is no error.
	Remove(ctx context.Context, id string, grace time.Duration) error
	// Logs returns the last lines of a container's output (all, if lines is below 1), stdout and
	// stderr in order, at most 256 KiB.
	Logs(ctx context.Context, id string, lines int) (string, error)
	// Exec runs a command in a running container and returns its output (at most 4 MiB a stream)
	// and exit code.
	Exec(ctx context.Context, id string, command []string) (ExecResult, error)
	// RemoveVolume removes a named volume if it carries the label (any value), and fails with
	// ErrUnlabelled if it does not; one that is gone is no error.
	RemoveVolume(ctx context.Context, name, label string) error
	// Close gives idle connections back.
	Close() error
}

// Version is what the engine says of itself.
type Version struct {
	// Server is the engine's release, such as "28.3.3".
	Server string
	// API is the negotiated API version, such as "1.41".
	API string
}

// Image is an image as the engine has it.
type Image struct {
	// ID is the content address, "sha256:…".
	ID string
	// Architecture is Go's name of it: "arm64", "amd64".
	Architecture string
	// Env is the environment baked into the image.
	Env map[string]string
}

// Mount binds a folder of the host, or a named volume, into a container.
type Mount struct {
	// Source is a path on the host; with Volume it is the volume's name.
	Source string
	Target string
	// ReadOnly mounts it so that the container cannot write.
	ReadOnly bool
	// Volume says that Source names a volume.
	Volume bool
}

// ContainerSpec is all that we ever set on a container.
type ContainerSpec struct {
	Name       string
	Image      string
	Entrypoint []string // nil keeps the image's, an empty one clears it
	Command    []string
	Env        map[string]string
	Labels     map[string]string
	Mounts     []Mount
	// NetworkMode, IPCMode and PIDMode as Docker spells them: "host", "shareable", "container:<name>".
	NetworkMode string
	IPCMode     string
	PIDMode     string
	// SharedMemory is the size of /dev/shm in bytes; 0 keeps the engine's default of 64 MiB.
	SharedMemory int64
	// AllGPUs requests every GPU of the host (docker run --gpus all).
	AllGPUs bool
	// Devices are paths under /dev to pass through, at the same path.
	Devices []string
	// CapAdd are capabilities without the CAP_ prefix.
	CapAdd []string
	// UnlimitedMemlock lifts RLIMIT_MEMLOCK, which RDMA registration needs.
	UnlimitedMemlock bool
}

// Container is an inspected container.
type Container struct {
	ID   string
	Spec ContainerSpec // as far as the engine tells; Env includes the image's own
	// ImageID is the id of the image it was made from.
	ImageID string
	// Status is Docker's word: "created", "running", "paused", "restarting", "removing", "exited", "dead".
	Status    string
	ExitCode  int
	OOMKilled bool
	// StartedAt is the last start, zero if it never started.
	StartedAt time.Time
}

// ExecResult is the outcome of a command in a container.
type ExecResult struct {
	ExitCode int
	Stdout   string
	Stderr   string
}

// Kind is a class of failure with its own sentence and next step.
type Kind int

// The classes of engine failures.
const (
	// Failed is any other answer of the engine; see Message.
	Failed Kind = iota
	// Down means that nothing answers on the socket.
	Down
	// Denied means that the login user may not use the socket.
	Denied
	// TooOld means that the engine speaks no API version that we do.
	TooOld
	// Conflict means that the name of a container to be created is in use.
	Conflict
	// Lost means that the connection broke, or that the machine was not reached: see Err.
	Lost
	// NotDocker means that something else than a Docker engine answers on the socket, such as Podman.
	NotDocker
	// BadSocket means that the path of the socket can be none.
	BadSocket
)

// Error is a failed engine call.
type Error struct {
	Kind Kind
	// Host is the machine, Step what was tried: "create container ray-spark".
	Host, Step string
	// Message is the engine's own sentence, if it answered.
	Message string
	Err     error
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Message
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	if e.Host == "" {
		return e.Step + ": " + text
	}
	return e.Host + ": " + e.Step + ": " + text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Advice is the next step, empty if the failure does not tell one.
func (e *Error) Advice() string {
	switch e.Kind {
	case Down:
		return "The Docker engine does not answer on that socket. Start it there (sudo systemctl start docker), or name its socket with docker_socket."
	case Denied:
		return "Add the login user to the docker group there (sudo usermod -aG docker <user>); the next SSH connection has it."
	case TooOld:
		return "Docker API " + MinimumAPIVersion + " (engine 20.10) or newer is needed: update the engine there."
	case Conflict:
		return "Another container has that name. Remove or rename it there, or choose another name here."
	case Lost:
		// The way to the machine knows better why it failed.
		var way interface{ Advice() string }
		if errors.As(e.Err, &way) && way.Advice() != "" {
			return way.Advice()
		}
		return "The connection broke. Apply again: it goes on from what is there."
	case NotDocker:
		return "Install Docker there with the NVIDIA container toolkit (DGX OS has both), or name the socket of its engine with docker_socket."
	case BadSocket:
		return "Write the path of the engine's socket on the machine as docker_socket, or leave it out: " + DefaultSocket + " is the default."
	case Failed:
	}
	return ""
}
