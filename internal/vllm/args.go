package vllm

import (
	"regexp"
	"strconv"
	"strings"
)

// flagName is the name of an argument as vLLM's parser reads it: underscores are dashes, a value may
// follow "=", and a short option may carry its value at once ("-tp2"). Empty for a value.
func flagName(arg string) string {
	if short := regexp.MustCompile(`^-(tp|pp|dp|pcp|dcp|asc|dpb|q|n|r)(=?\d*)$`).FindStringSubmatch(arg); short != nil {
		return "-" + short[1]
	}
	if !strings.HasPrefix(arg, "--") || arg == "--" {
		return ""
	}
	name, _, _ := strings.Cut(arg, "=")
	name, _, _ = strings.Cut(name, ".")
	return strings.ReplaceAll(name, "_", "-")
}

// isFlag says whether an argument means the flag: argparse takes any unambiguous beginning of it.
func isFlag(arg, flag string) bool {
	name := flagName(arg)
	if name == "" {
		return false
	}
	if !strings.HasPrefix(flag, "--") {
		return name == flag
	}
	return strings.HasPrefix(name, "--") && strings.HasPrefix(flag, name)
}

// flagValue is the value of the last occurrence of a flag under one of its names.
func flagValue(args []string, names ...string) (string, bool) {
	value, found := "", false
	for i, arg := range args {
		for _, name := range names {
			if flagName(arg) != name {
				continue
			}
			found = true
			switch {
			case strings.Contains(arg, "="):
				_, value, _ = strings.Cut(arg, "=")
			case !strings.HasPrefix(name, "--") && len(arg) > len(name):
				value = arg[len(name):]
			case i+1 < len(args):
				value = args[i+1]
			}
		}
	}
	return value, found
}

// factor is a positive number given by a flag, 1 without it.
func factor(args []string, names ...string) int {
	text, _ := flagValue(args, names...)
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return 1
	}
	return number
}

// dataParallel is the number of replicas of the model.
func (s Spec) dataParallel() int {
	return max(s.Options.DataParallel, 1) * factor(s.Args, "--data-parallel-size", "-dp")
}

// GPUs that the server needs: tensor, pipeline, data and prefill-context parallel ranks.
func (s Spec) GPUs() int {
	return max(s.TensorParallel, 1) *
		max(s.Options.PipelineParallel, 1) * factor(s.Args, "--pipeline-parallel-size", "-pp") *
		s.dataParallel() *
		factor(s.Args, "--prefill-context-parallel-size", "-pcp")
}
