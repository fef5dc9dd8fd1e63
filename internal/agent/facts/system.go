package facts

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// ParseOSRelease gives PRETTY_NAME of an os-release file, or NAME, or nothing.
func ParseOSRelease(text string) string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || strings.HasPrefix(key, "#") {
			continue
		}
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		values[key] = value
	}
	if pretty := values["PRETTY_NAME"]; pretty != "" {
		return pretty
	}
	return values["NAME"]
}

// ParseMeminfo reads /proc/meminfo, whose unit is KiB.
func ParseMeminfo(text string) (agent.Memory, error) {
	values := map[string]int64{}
	for line := range strings.Lines(text) {
		key, rest, found := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if !found || len(fields) == 0 {
			continue
		}
		if kib, err := strconv.ParseInt(fields[0], 10, 64); err == nil && kib >= 0 && kib < 1<<50 {
			values[key] = kib << 10
		}
	}
	memory := agent.Memory{Total: values["MemTotal"], Available: values["MemAvailable"], Free: values["MemFree"]}
	if memory.Total == 0 {
		return memory, fmt.Errorf("/proc/meminfo has no MemTotal in its %d bytes", len(text))
	}
	return memory, nil
}

// Account is the user of this process, with the groups that it really has: one that was added
// after the login is not among them.
func (s Source) Account() agent.User {
	if s.User != nil {
		return *s.User
	}
	account := agent.User{UID: os.Getuid(), GID: os.Getgid(), Home: os.Getenv("HOME"), Name: os.Getenv("USER")}
	// Accounts of a directory service are not in /etc/passwd; then the environment has to do.
	if found, err := user.Current(); err == nil {
		account.Name = found.Username
		if account.Home == "" {
			account.Home = found.HomeDir
		}
	}
	account.Groups = []string{}
	ids, err := os.Getgroups()
	if err != nil {
		ids = []int{account.GID}
	}
	for _, id := range ids {
		name := strconv.Itoa(id)
		if group, err := user.LookupGroupId(name); err == nil {
			name = group.Name
		}
		account.Groups = append(account.Groups, name)
	}
	return account
}
