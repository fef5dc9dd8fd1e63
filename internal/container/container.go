// Package container has the words in which Ray's and vLLM's containers are shown and compared.
package container

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/identity"
)

// CommandLine is a command as a POSIX shell takes it. Arguments that carry secrets are refused in a
// declaration, so nothing is hidden here.
func CommandLine(command []string) string {
	words := make([]string, 0, len(command))
	for _, word := range command {
		words = append(words, quote(word))
	}
	return strings.Join(words, " ")
}

// quote is a word as a POSIX shell takes it.
func quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@%+~"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// SecretFlag says whether an argument's flag ("--api-key", "--redis_password") is there to carry a secret.
func SecretFlag(flag string) bool {
	return strings.HasPrefix(flag, "-") && identity.CarriesSecret(strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "_"))
}

// Ending says how a container with Docker's status ended, to stand behind that word; empty for one
// that did not.
func Ending(status string, exitCode int, oomKilled bool) string {
	switch {
	case status != "exited" && status != "dead":
		return ""
	case oomKilled:
		return fmt.Sprintf(" (exit code %d, killed for lack of memory)", exitCode)
	}
	return fmt.Sprintf(" (exit code %d)", exitCode)
}

// EnvDiffers names the variables that differ, sorted.
func EnvDiffers(want, seen map[string]string) []string {
	differs := map[string]bool{}
	for name, value := range want {
		if got, found := seen[name]; !found || got != value {
			differs[name] = true
		}
	}
	for name := range seen {
		if _, found := want[name]; !found {
			differs[name] = true
		}
	}
	return slices.Sorted(maps.Keys(differs))
}
