package vllm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
)

// Flags are the arguments that an image's `vllm serve` knows.
type Flags struct {
	// Image is the id of the image; empty if nothing is known.
	Image string   `json:"image"`
	Names []string `json:"names"`
}

// flagsProgram reads the flags from vLLM's source, in tenths of a second: `vllm serve --help` imports
// torch, and takes many. It may find too many, and is asked again before a flag is refused.
const flagsProgram = `
import ast, importlib.util as util, json, os
files, flags = [], set()
spec = util.find_spec("vllm")
for root in (spec.submodule_search_locations if spec else None) or []:
    files.append(os.path.join(root, "engine", "arg_utils.py"))
    for folder, _, names in os.walk(os.path.join(root, "entrypoints")):
        files += [os.path.join(folder, name) for name in names if name in ("cli_args.py", "serve.py", "api_server.py")]
for path in files:
    if not os.path.exists(path):
        continue
    with open(path) as file:
        tree = ast.parse(file.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("--") and " " not in node.value:
            flags.add(node.value.replace("_", "-"))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            flags.add("--" + node.target.id.replace("_", "-"))
print(json.dumps(sorted(flags)))
`

// helpCommand prints every flag, as vLLM's own parser has them.
func helpCommand() []string { return []string{"vllm", "serve", "--help=all"} }

// fewest is how many flags a real `vllm serve` has at least: with less, the source was not understood.
const fewest = 50

// unknown are the arguments whose flag is not among the names. An unambiguous beginning counts as the
// flag, as in argparse; short options are not judged.
func (f Flags) unknown(args []string) []string {
	var found []string
	for _, arg := range args {
		name := flagName(arg)
		if !strings.HasPrefix(name, "--") {
			continue
		}
		positive := strings.Replace(name, "--no-", "--", 1)
		known := func(flag string) bool { return strings.HasPrefix(flag, name) || strings.HasPrefix(flag, positive) }
		if !slices.ContainsFunc(f.Names, known) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// FlagError says that an image's vLLM does not know a flag.
type FlagError struct {
	Host, Image string
	Flags       []string
}

// Error implements error.
func (e *FlagError) Error() string {
	return fmt.Sprintf("%s: the vLLM of image %s does not know %s", e.Host, e.Image, strings.Join(e.Flags, ", "))
}

// successors of flags that vanished, with the release that dropped them.
func successors() map[string]string {
	return map[string]string{
		"--disable-log-requests":    "since vLLM 0.12 requests are not logged unless --enable-log-requests is given: remove it",
		"--swap-space":              "vLLM 0.18 dropped swapping to the host's memory, which on a Spark is the GPU's anyway: remove it",
		"--enable-reasoning":        "vLLM 0.10 dropped it: reasoning_parser alone turns reasoning on",
		"--use-v2-block-manager":    "it has been the only one since vLLM 0.7: remove it",
		"--num-scheduler-steps":     "the V1 engine has no such setting: remove it",
		"--speculative-model":       "use speculative_config",
		"--guided-decoding-backend": "it is --structured-outputs-config.backend since vLLM 0.11",
		"--rope-scaling":            "use --hf-overrides '{\"rope_scaling\": …}'",
	}
}

// Advice implements the provider's adviser.
func (e *FlagError) Advice() string {
	var advice []string
	for _, flag := range e.Flags {
		if successor, known := successors()[flag]; known {
			advice = append(advice, flag+": "+successor+".")
		}
	}
	if len(advice) < len(e.Flags) {
		advice = append(advice, "Flags come and go between releases of vLLM: see `vllm serve --help=all` in the image. Correct args, or use an image that knows them.")
	}
	return strings.Join(advice, "\n") + "\nNothing was stopped or started."
}

// CheckFlags says whether the image's `vllm serve` knows every flag; it asks in the head's Ray container,
// which has the same image. What is known of the image is not asked again. Where nothing can be asked
// nothing is judged: no container runs yet, or the session may only look. It fails with a [*FlagError].
func CheckFlags(ctx context.Context, spec Spec, machines Machines, known Flags) (Flags, error) {
	machine, err := machines.of(spec.Cluster.Head().Host)
	if err != nil {
		return known, err
	}
	image, err := machine.Image(ctx, spec.image())
	if errors.Is(err, engine.ErrNotFound) {
		return known, nil // The start says so.
	}
	if err != nil {
		return known, err
	}
	command := ServeCommand(spec)[3:]
	if known.Image == image.ID && len(known.unknown(command)) == 0 {
		return known, nil
	}
	helper, err := machine.Agent(ctx)
	if err != nil || helper.ReadOnly() {
		return known, err
	}
	containers, err := machine.Containers(ctx)
	if err != nil {
		return known, err
	}
	rank, exists := found{containers: containers}.container(ray.ContainerName(spec.Cluster.Name))
	if !exists || rank.Status != running || rank.ImageID != image.ID {
		return known, nil
	}
	docker, err := machine.Engine(ctx)
	if err != nil {
		return known, err
	}
	if known.Image != image.ID {
		result, err := docker.Exec(ctx, rank.ID, []string{"python3", "-c", flagsProgram})
		if err != nil {
			return known, err
		}
		names, ok := parseFlags(result)
		if !ok {
			return known, nil
		}
		known = Flags{Image: image.ID, Names: names}
	}
	unknown := known.unknown(command)
	if len(unknown) == 0 {
		return known, nil
	}
	// Plug-ins add flags that no source shows: vLLM itself decides.
	result, err := docker.Exec(ctx, rank.ID, helpCommand())
	if err != nil {
		return known, err
	}
	help := parseHelp(result.Stdout + result.Stderr)
	if result.ExitCode != 0 || len(help) < fewest {
		return known, nil
	}
	known.Names = help
	if unknown = known.unknown(command); len(unknown) > 0 {
		return known, &FlagError{Host: machine.Host(), Image: spec.image(), Flags: unknown}
	}
	return known, nil
}

// parseFlags reads what the program printed; ok is false for an image that it does not understand.
func parseFlags(result engine.ExecResult) (names []string, ok bool) {
	err := json.Unmarshal([]byte(result.Stdout), &names)
	return names, err == nil && result.ExitCode == 0 && len(names) >= fewest
}

var helpFlag = regexp.MustCompile(`--[a-z0-9][a-z0-9_.-]*`)

// parseHelp finds the flags in a help text.
func parseHelp(text string) []string {
	var names []string
	for _, name := range helpFlag.FindAllString(text, -1) {
		names = append(names, strings.ReplaceAll(strings.TrimRight(name, "-."), "_", "-"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
