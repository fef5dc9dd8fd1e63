package vllm

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// Key is the API key of a server. Nothing prints it, also where it is part of something else.
type Key struct{ value *string }

// NewKey keeps a key.
func NewKey(value string) Key { return Key{&value} }

// text is the key itself; empty without one.
func (k Key) text() string {
	if k.value == nil {
		return ""
	}
	return *k.value
}

// String implements fmt.Stringer.
func (k Key) String() string { return "(hidden)" }

// GoString implements fmt.GoStringer.
func (k Key) GoString() string { return "(hidden)" }

// keyMax bounds a key, in bytes: the agent keeps small secrets.
const keyMax = 1024

// CheckKey says why a text cannot be a key in an HTTP header; empty if it can. It does not repeat it.
func CheckKey(text string) string {
	switch {
	case text == "":
		return "It is empty."
	case len(text) > keyMax:
		return fmt.Sprintf("It has %d bytes; %d are allowed.", len(text), keyMax)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "It is sent in an HTTP header: use printable ASCII characters, without blanks and line breaks (trimspace() takes the one at the end of a file)."
	}
	return ""
}

// LabelKeyVersion on a server's container is the version of the API key that it was started with.
const LabelKeyVersion = "io.spark-stack.spark.api-key-version"

// Where the key lies in the server's container. On the node it is a secret of the agent's.
const (
	keyTarget = "/run/spark-stack/vllm"
	keyFile   = "api_key"
	keyPath   = keyTarget + "/" + keyFile
)

// keyProgram runs the command behind it with the key of the file. A variable of the environment would
// be shown by `docker inspect`, and vLLM's Ray executor copies it to every rank; an argument would be
// shown by `ps`, and older releases log it. So the process itself answers where vLLM looks the
// variable up: every release asks vllm.envs for it when it builds the API.
const keyProgram = `import sys, vllm.envs as envs
with open("` + keyPath + `") as file: key = file.read().strip()
assert key, "the file with the API key is empty"
envs.environment_variables["VLLM_API_KEY"] = lambda: key
sys.argv = sys.argv[1:]
from vllm.entrypoints.cli.main import main
sys.exit(main())`

// keyed is what stands before `vllm serve` for a server with a key. Vllm must be importable in the
// Python that python3 is, which is what the cluster's start proves of the image.
func (s Spec) keyed() []string {
	if s.KeyVersion == 0 {
		return nil
	}
	return []string{"python3", "-c", keyProgram}
}

// single are arguments that keep the API in the process which has the key: further API servers would
// be processes of their own, and open.
func (s Spec) single() []string {
	if _, set := flagValue(s.Args, "--api-server-count", "-asc"); set || s.KeyVersion == 0 || s.dataParallel() < 2 {
		return nil
	}
	return []string{"--api-server-count", "1"}
}

// keyFolder is the deployment's folder among the agent's secrets, whose names have no dots.
func (s Spec) keyFolder() string {
	return path.Join("vllm", strings.NewReplacer("_", "__", ".", "_p").Replace(s.Name))
}

// KeyName is the agent's name for the deployment's key.
func (s Spec) KeyName() string { return path.Join(s.keyFolder(), keyFile) }

// keyMount brings the key into the container on the node whose facts are given.
func (s Spec) keyMount(facts agent.Facts) engine.Mount {
	return engine.Mount{Source: path.Join(facts.User.Home, agent.SecretFolder, s.keyFolder()), Target: keyTarget, ReadOnly: true}
}

// writeKey writes the key's file; one that nobody needs any more is removed.
func (s *starter) writeKey(ctx context.Context) error {
	if s.spec.KeyVersion == 0 {
		return removeKey(ctx, s.spec, s.machine)
	}
	helper, err := s.machine.Agent(ctx)
	if err != nil {
		return err
	}
	if err := helper.WriteSecret(ctx, s.spec.KeyName(), s.key.text()); err != nil {
		return s.failed("write the API key", "it is kept in ~/"+agent.SecretFolder+" of the login user, who must be able to write there", err)
	}
	return nil
}

// keyGone says that the file with the key, which the next start of the container needs, is not there.
// A key that may only look does not see it, and then it is not judged.
func (s Spec) keyGone(ctx context.Context, machine fleet.Machine) (bool, error) {
	if s.KeyVersion == 0 {
		return false, nil
	}
	helper, err := machine.Agent(ctx)
	if err != nil || helper.ReadOnly() {
		return false, err
	}
	_, found, err := helper.ReadSecret(ctx, s.KeyName())
	return !found, err
}

// removeKey removes the key's file from the head.
func removeKey(ctx context.Context, spec Spec, machine fleet.Machine) error {
	helper, err := machine.Agent(ctx)
	if err != nil {
		return err
	}
	return helper.RemoveSecret(ctx, spec.KeyName())
}
