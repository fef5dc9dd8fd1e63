package facts

import (
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// ParseOSRelease gives PRETTY_NAME of an os-release file, or NAME, or nothing.
func ParseOSRelease(text string) string {
	values := ParseSettings(text)
	if pretty := values["PRETTY_NAME"]; pretty != "" {
		return pretty
	}
	return values["NAME"]
}

// ParseHosts gives the IPv4 addresses that an /etc/hosts has for a name.
func ParseHosts(text, name string) []netip.Addr {
	var list []netip.Addr
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 || name == "" || !slices.Contains(fields[1:], name) {
			continue
		}
		if address, err := netip.ParseAddr(fields[0]); err == nil && address.Is4() && !slices.Contains(list, address) {
			list = append(list, address)
		}
	}
	return list
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
	memory := agent.Memory{
		Total: values["MemTotal"], Available: values["MemAvailable"], Free: values["MemFree"],
		CMATotal: values["CmaTotal"], CMAFree: values["CmaFree"],
	}
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
