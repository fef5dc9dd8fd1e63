package hosttest

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"
	"github.com/moby/moby/api/types/image"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// storedImage is an image of one host's engine.
type storedImage struct {
	id           string
	references   []string
	architecture string
	env          map[string]string
	entrypoint   []string
}

// Image describes an image for [Host.AddImage].
type Image struct {
	// Reference names it; ID is its content address, made from the reference if empty.
	Reference, ID string
	// Architecture in Go's name; empty is arm64, as on a DGX Spark.
	Architecture string
	// Env is the baked environment; PATH is always there.
	Env map[string]string
	// Entrypoint of the image.
	Entrypoint []string
}

func newImage(reference string) *storedImage { return storedFrom(Image{Reference: reference}) }

func storedFrom(described Image) *storedImage {
	stored := &storedImage{
		id: described.ID, references: []string{described.Reference}, architecture: described.Architecture,
		env:        map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		entrypoint: described.Entrypoint,
	}
	maps.Copy(stored.env, described.Env)
	if stored.id == "" {
		digest := sha256.Sum256([]byte(described.Reference))
		stored.id = "sha256:" + hex.EncodeToString(digest[:])
	}
	if stored.architecture == "" {
		stored.architecture = "arm64"
	}
	return stored
}

// AddImage puts an image on the host; an image of the same reference loses it.
func (h *Host) AddImage(described Image) {
	h.change(func() {
		h.dropReference(described.Reference)
		h.images = append(h.images, storedFrom(described))
	})
}

// RemoveImage takes an image away from the host.
func (h *Host) RemoveImage(reference string) { h.change(func() { h.dropReference(reference) }) }

func (h *Host) dropReference(reference string) {
	for _, stored := range h.images {
		stored.references = slices.DeleteFunc(stored.references, func(r string) bool { return r == reference })
	}
	h.images = slices.DeleteFunc(h.images, func(s *storedImage) bool { return len(s.references) == 0 })
}

// lookUp finds an image by reference or id. The lock is held.
func (h *Host) lookUp(reference string) *storedImage {
	digest := strings.TrimPrefix(reference, "sha256:")
	for _, stored := range h.images {
		if slices.Contains(stored.references, reference) || slices.Contains(stored.references, reference+":latest") {
			return stored
		}
		if len(digest) >= 12 && strings.HasPrefix(strings.TrimPrefix(stored.id, "sha256:"), digest) {
			return stored
		}
	}
	return nil
}

// completed adds the image's variables that a container does not set.
func (s *storedImage) completed(env []string) []string {
	for _, entry := range s.environment() {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(env, func(own string) bool { return strings.HasPrefix(own, name+"=") }) {
			env = append(slices.Clip(env), entry)
		}
	}
	return env
}

func (s *storedImage) environment() []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		list = append(list, name+"="+s.env[name])
	}
	return list
}

// inspectImage answers GET /images/{name}/json.
func (e *engineServer) inspectImage(w http.ResponseWriter, r *http.Request) {
	reference := r.PathValue("name")
	stored := e.host.lookUp(reference)
	if stored == nil {
		e.fail(w, http.StatusNotFound, "No such image: %s", reference)
		return
	}
	var tags, digests []string
	for _, name := range stored.references {
		if strings.Contains(name, "@") {
			digests = append(digests, name)
		} else {
			tags = append(tags, name)
		}
	}
	config := &dockerspec.DockerOCIImageConfig{}
	config.ImageConfig = ocispec.ImageConfig{Env: stored.environment(), Entrypoint: stored.entrypoint}
	e.answer(w, http.StatusOK, image.InspectResponse{
		ID: stored.id, RepoTags: tags, RepoDigests: digests, Os: "linux",
		Architecture: stored.architecture, Size: 22 << 30, Config: config,
		Created: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339Nano),
		RootFS:  image.RootFS{Type: "layers", Layers: []string{stored.id}},
	})
}
