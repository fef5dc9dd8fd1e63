package vllm

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/identity"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
	"github.com/spark-stack/terraform-provider-spark/internal/weights"
)

// Problem is something in the declaration that cannot work.
type Problem struct {
	// Path is the resource's attribute: "args", "env", "model", …
	Path string
	// Summary is one sentence, Detail says why and what to do.
	Summary, Detail string
}

// A container's name in Docker's alphabet, after our prefix.
const namePattern = `^[a-z0-9][a-z0-9._-]*$`

// Check finds what can be told from the declaration alone.
func Check(spec Spec) []Problem {
	var problems []Problem
	add := func(path, summary, format string, args ...any) {
		problems = append(problems, Problem{Path: path, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	if !regexp.MustCompile(namePattern).MatchString(spec.Name) {
		add("name", fmt.Sprintf("%q cannot name a deployment", spec.Name), "The container is called vllm-<name>: use lower case letters, digits, dots, dashes and underscores.")
	}
	if spec.Cluster.Head().Host == "" {
		add("cluster", "The cluster has no head", "The server runs on the head's node. Write cluster = ray_cluster.<name>.")
	}
	if spec.Image != "" && spec.Cluster.Image != "" && spec.Image != spec.Cluster.Image {
		add("image", "The server's image is not the cluster's",
			"The ranks run in the cluster's containers (%s) and must have the same vLLM, Ray and Python as the server (%s). Leave image out, or set it on the cluster.", spec.Cluster.Image, spec.Image)
	}
	if needed := spec.GPUs(); spec.Cluster.GPUTotal >= 0 && needed > spec.Cluster.GPUTotal {
		add("tensor_parallel_size", fmt.Sprintf("%d GPUs needed, the cluster will have %d", needed, spec.Cluster.GPUTotal),
			"Lower tensor_parallel_size or bring the missing GPU back. Nothing was changed.")
	}
	if spec.TensorParallel < 0 {
		add("tensor_parallel_size", fmt.Sprintf("%d GPUs cannot share a layer", spec.TensorParallel), "tensor_parallel_size is at least 1.")
	}
	checkPort(spec, add)
	checkSource(spec, add)
	checkEnv(spec, add)
	checkOptions(spec, add)
	checkArgs(spec, add)
	return problems
}

type adder func(path, summary, format string, args ...any)

func checkPort(spec Spec, add adder) {
	port := spec.port()
	if port < 1 || port > 65535 {
		add("port", fmt.Sprintf("%d is no port", port), "A port is a number from 1 to 65535.")
	}
	if _, gcs, err := net.SplitHostPort(spec.Cluster.Address); err == nil && gcs == strconv.Itoa(port) {
		add("port", fmt.Sprintf("Port %d is the cluster's own", port), "Ray's GCS listens there (%s), on the same host. Choose another port.", spec.Cluster.Address)
	}
}

// checkSource places the model on every member; the first fault of each kind is enough.
func checkSource(spec Spec, add adder) {
	places := map[string]weights.Place{}
	for _, member := range spec.Cluster.Members {
		place, err := weights.Location(spec.Source, spec.Cluster.WeightsDir, member.Home)
		if addPlaceProblem(err, add) {
			return
		}
		if member.Home != "" || !strings.HasPrefix(place.ServePath, "~") {
			places[member.Host] = place
		}
	}
	addPlaceProblem(weights.Same(places), add)
}

func addPlaceProblem(err error, add adder) bool {
	var problem *weights.Problem
	if !errors.As(err, &problem) {
		return false
	}
	path := "model"
	if problem.Attribute == "weights_dir" {
		path = "cluster"
	}
	add(path, problem.Summary, "%s", problem.Detail)
	return true
}

// ours are variables of the server that hold the two containers together.
func ours() map[string]string {
	return map[string]string{
		"VLLM_RPC_BASE_PATH": "The server and the rank beside it meet over socket files in the folder that both containers share; elsewhere they wait for each other for ever.",
	}
}

func checkEnv(spec Spec, add adder) {
	for _, name := range identity.Refused(spec.Env) {
		add("env", fmt.Sprintf("%s is set by the provider", name),
			"It belongs to a node's identity and is resolved on each node at each start; a value of your own is how nodes come to be known by two addresses. Remove it.")
	}
	for _, name := range ray.AuthNames() {
		if _, found := spec.Env[name]; found {
			add("env", fmt.Sprintf("%s is set by the provider", name), "The server has its cluster's token. Remove it.")
		}
	}
	for name, why := range ours() {
		if _, found := spec.Env[name]; found {
			add("env", fmt.Sprintf("%s is set by the provider", name), "%s Remove it.", why)
		}
	}
}

// reserved are the flags that the resource's own attributes, or the way that we serve, decide.
func reserved() []struct{ flags, instead string } {
	return []struct{ flags, instead string }{
		{"--tensor-parallel-size -tp", "Use tensor_parallel_size."},
		{"--distributed-executor-backend", "The ranks are placed by the Ray cluster."},
		{"--port", "Use port."},
		{"--model", "Use model."},
		{"--served-model-name", "Use served_model_name."},
		{"--revision", "Use model = { repo, revision }."},
		{"--nnodes -n --node-rank -r --master-addr --master-port --headless", "The ranks are placed by the Ray cluster."},
		{"--uds", "Readiness and drift are asked over TCP; use port and --host."},
		{"--ssl-keyfile --ssl-certfile", "Readiness and drift are asked over plain HTTP on the node; put TLS in front of the server."},
		{"--config", "A file on the node would hide from the plan what runs; write its lines as args."},
	}
}

// secrets are flags that carry one.
func secrets() map[string]string {
	return map[string]string{
		"--api-key":  "Arguments are shown by `ps`, `docker inspect` and vLLM's own log. Use api_key, which no plan, state, log or container shows.",
		"--hf-token": "The server needs no token: it reads the files on its node.",
	}
}

func checkArgs(spec Spec, add adder) {
	if count, _ := flagValue(spec.Args, "--api-server-count", "-asc"); spec.KeyVersion != 0 && count != "" && count != "1" {
		add("args", "Several API servers cannot have an API key", "Only one process has the key; the others would be open. Write --api-server-count 1, or put a proxy that asks for the key in front of the server.")
	}
	for _, arg := range spec.Args {
		for _, one := range reserved() {
			for flag := range strings.FieldsSeq(one.flags) {
				if isFlag(arg, flag) {
					add("args", fmt.Sprintf("%s does not belong in args", flagName(arg)), "%s", one.instead)
				}
			}
		}
		for flag, instead := range secrets() {
			if isFlag(arg, flag) {
				add("args", fmt.Sprintf("%s does not belong in args", flagName(arg)), "%s", instead)
			}
		}
	}
}
