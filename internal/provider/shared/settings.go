package shared

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/client"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// Kind is how a setting is written. Its value is handled as words: a text and a number are one word,
// a list is several.
type Kind int

// The kinds of settings.
const (
	Text Kind = iota
	Number
	List
)

// Setting is one part of how nodes are reached. The provider's block, its environment variables and
// the connection of each spark_node are all made from [Settings].
type Setting struct {
	Name string
	Kind Kind
	// Env is the provider's environment variable; empty means that only a node has this setting. Lists
	// are separated by commas there, as for ssh -J.
	Env string
	// Node says that a node can have its own.
	Node bool
	// Secret is never stored: it is the provider's alone, whose configuration is in no state.
	Secret bool
	// What it is, and what holds without it, as sentences for the documentation.
	What, Default string
	// Problem says what is wrong with a word; empty if nothing is.
	Problem func(word string) string
	// Set gives the words to the provider's defaults; nil for what only a node has.
	Set func(defaults *Defaults, words []string)
}

// Defaults are the provider's settings for nodes that have none of their own.
type Defaults struct {
	fleet.Defaults
	KeepUnreachable bool
}

// The words for what a refresh does with a node that does not answer.
const (
	unreachableError = "error"
	unreachableKeep  = "keep"
)

// Settings are all settings, in the order of the documentation.
func Settings() []Setting {
	all := settings()
	for i := range all {
		if !all[i].Secret {
			all[i].Problem = noKey(all[i].Problem)
		}
	}
	return all
}

// noKey refuses a private key in a place that is stored and repeated in messages.
func noKey(next func(string) string) func(string) string {
	return func(word string) string {
		if strings.Contains(word, "PRIVATE KEY-----") {
			return "Its value is a private key, which belongs into private_key of the provider or SPARK_SSH_PRIVATE_KEY; anything else is stored in the state."
		}
		return next(word)
	}
}

func settings() []Setting {
	return []Setting{
		{Name: "user", Env: "SPARK_SSH_USER", Node: true, Problem: plainWord,
			What: "SSH user; without root, in the group `docker`.", Default: "what `ssh_config_file` says, then the local user",
			Set: func(d *Defaults, w []string) { d.User = w[0] }},
		{Name: "port", Kind: Number, Env: "SPARK_SSH_PORT", Node: true, Problem: portNumber,
			What: "SSH port.", Default: "what `ssh_config_file` says, then 22",
			Set: func(d *Defaults, w []string) { d.Port, _ = strconv.Atoi(w[0]) }}, // Problem has read it
		{Name: "private_key_file", Env: "SPARK_SSH_PRIVATE_KEY_FILE", Node: true, Problem: notEmpty,
			What: "Private key file.", Default: "the SSH agent, what `ssh_config_file` says, then `~/.ssh/id_ed25519`, `id_ecdsa`, `id_rsa`",
			Set: func(d *Defaults, w []string) { d.PrivateKeyFile = w[0] }},
		{Name: "private_key", Env: "SPARK_SSH_PRIVATE_KEY", Secret: true, Problem: notEmpty,
			What: "The private key itself, in PEM, instead of a file. It is stored in no state. For nodes with different keys use an aliased provider block each.",
			Set:  func(d *Defaults, w []string) { d.PrivateKey = w[0] }},
		{Name: "passphrase", Env: "SPARK_SSH_PASSPHRASE", Secret: true, Problem: notEmpty,
			What: "Opens an encrypted private key. It is stored in no state.",
			Set:  func(d *Defaults, w []string) { d.Passphrase = w[0] }},
		{Name: "certificate_file", Env: "SPARK_SSH_CERTIFICATE_FILE", Node: true, Problem: notEmpty,
			What: "OpenSSH certificate for the key.", Default: "`<key file>-cert.pub`, if it is there",
			Set: func(d *Defaults, w []string) { d.CertificateFile = w[0] }},
		{Name: "known_hosts_file", Env: "SPARK_SSH_KNOWN_HOSTS_FILE", Problem: notEmpty,
			What: "File of trusted host keys; it is read and never written.", Default: "`~/.ssh/known_hosts` and `/etc/ssh/ssh_known_hosts`",
			Set: func(d *Defaults, w []string) { d.KnownHostsFiles = w }},
		{Name: "host_key", Node: true, Problem: notEmpty,
			What: "SSH host key, pinned: a public key line (`ssh-ed25519 AAAA…`) or a fingerprint (`SHA256:…`).", Default: "the known_hosts files decide"},
		{Name: "host_key_policy", Env: "SPARK_SSH_HOST_KEY_POLICY", Node: true, Problem: oneOf("strict", "accept-new", "off"),
			What:    "What happens with a host key that no file knows: `strict` refuses it, `accept-new` trusts it for this run and writes nothing, `off` trusts any key and warns.",
			Default: "what `ssh_config_file` says (`no` is `off`), then `strict`",
			Set:     func(d *Defaults, w []string) { d.HostKeyPolicy = w[0] }},
		{Name: "ssh_config_file", Env: "SPARK_SSH_CONFIG_FILE", Problem: notEmpty,
			What: "The ssh_config to follow; `none` follows no file. What is set here wins over it.", Default: "`~/.ssh/config` and `/etc/ssh/ssh_config`",
			Set: func(d *Defaults, w []string) { d.ConfigFile = w[0] }},
		{Name: "proxy_jump", Kind: List, Env: "SPARK_SSH_PROXY_JUMP", Node: true, Problem: jump,
			What:    "Jump hosts in order, each `[user@]host[:port]`, checked by the same rules as nodes; `[\"none\"]` connects directly.",
			Default: "what `ssh_config_file` says",
			Set:     func(d *Defaults, w []string) { d.ProxyJump = w }},
		{Name: "transport", Node: true, Problem: oneOf(fleet.TransportSSH, fleet.TransportLocal),
			What: "`ssh`, or `local` for the machine that Terraform runs on.", Default: "`ssh`"},
		{Name: "docker_socket", Env: "SPARK_DOCKER_SOCKET", Node: true, Problem: socketPath,
			What: "Path of the Docker socket on the node.", Default: "`/var/run/docker.sock`",
			Set: func(d *Defaults, w []string) { d.Socket = w[0] }},
		{Name: "agent_dir", Env: "SPARK_AGENT_DIR", Node: true, Problem: agentFolder,
			What:    "Folder on the node for our helper, for homes that cannot be written or run from.",
			Default: "the login user's cache folder, then others that serve",
			Set:     func(d *Defaults, w []string) { d.AgentDir = w[0] }},
		{Name: "unreachable", Env: "SPARK_UNREACHABLE", Node: true, Problem: oneOf(unreachableError, unreachableKeep),
			What:    "What a refresh does with a node that does not answer: `error` stops the plan with exit code 1, `keep` goes on with the last known values and shows the node as drifted.",
			Default: "`error`",
			Set:     func(d *Defaults, w []string) { d.KeepUnreachable = w[0] == unreachableKeep }},
	}
}

func notEmpty(word string) string {
	if word == "" {
		return "It is empty. Leave it out, or write a value."
	}
	return ""
}

// plainWord keeps out what a program that reads a command line would take for something else.
func plainWord(word string) string {
	if word == "" || strings.HasPrefix(word, "-") || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q must be one word that does not begin with a dash.", word)
	}
	return ""
}

func portNumber(word string) string {
	if port, err := strconv.Atoi(word); err != nil || port < 1 || port > 65535 {
		return fmt.Sprintf("%q is no port number between 1 and 65535.", word)
	}
	return ""
}

func socketPath(word string) string {
	var wrong *engine.Error
	if errors.As(engine.CheckSocket(word), &wrong) {
		return wrong.Message + "."
	}
	return ""
}

func agentFolder(word string) string {
	if err := client.CheckFolder(word); err != nil {
		return err.Error() + "."
	}
	return ""
}

func oneOf(words ...string) func(string) string {
	return func(word string) string {
		if !slices.Contains(words, word) {
			return fmt.Sprintf("%q is none of %s.", word, strings.Join(words, ", "))
		}
		return ""
	}
}

// jump checks one "[user@]host[:port]".
func jump(word string) string {
	if _, err := ParseAddress(word); err != nil {
		return err.Error()
	}
	return ""
}

// Address is where a machine is reached, as people write it for ssh.
type Address struct {
	User, Host string
	Port       int // 0 if it was not written
}

// ParseAddress reads "[user@]host[:port]". An IPv6 address with a port has brackets.
func ParseAddress(text string) (Address, error) {
	var out Address
	rest := text
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		out.User, rest = rest[:at], rest[at+1:]
		if plainWord(out.User) != "" {
			return Address{}, fmt.Errorf("%q names no user before the @; write [user@]host[:port]", text)
		}
	}
	switch {
	case strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]"):
		out.Host = rest[1 : len(rest)-1]
	case strings.HasPrefix(rest, "[") || strings.Count(rest, ":") == 1:
		host, port, err := net.SplitHostPort(rest)
		if err != nil || portNumber(port) != "" {
			return Address{}, fmt.Errorf("%q has no port number between 1 and 65535 after the colon; write [user@]host[:port]", text)
		}
		out.Host = host
		out.Port, _ = strconv.Atoi(port) // portNumber has read it
	default:
		out.Host = rest
	}
	if plainWord(out.Host) != "" || strings.ContainsAny(out.Host, "[]/") || strings.Contains(out.Host, ":") && net.ParseIP(withoutZone(out.Host)) == nil {
		return Address{}, fmt.Errorf("%q is no host name or address; write [user@]host[:port], with an IPv6 address in brackets", text)
	}
	return out, nil
}

func withoutZone(host string) string {
	address, _, _ := strings.Cut(host, "%")
	return address
}
