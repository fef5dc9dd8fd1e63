package facts

import (
	"context"
	"fmt"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// firewall reads what may be read of the packet filter: ufw's settings are everybody's, its rules and
// the kernel's chains are root's.
func (s Source) firewall(ctx context.Context, user agent.User, odd *notes) agent.Firewall {
	var firewall agent.Firewall
	if settings := s.text("/etc/ufw/ufw.conf"); settings != "" {
		firewall.UFW = "disabled"
		if strings.EqualFold(ParseSettings(settings)["ENABLED"], "yes") {
			firewall.UFW = "enabled"
			firewall.Input = ParseSettings(s.text("/etc/default/ufw"))["DEFAULT_INPUT_POLICY"]
		}
	}
	if user.UID != 0 || (s.Root != "" && s.Run == nil) {
		return firewall
	}
	output, err := s.run(ctx, programTimeout, "iptables", "-S", "FORWARD")
	if err != nil {
		odd.add(fmt.Errorf("iptables -S FORWARD: %w", err))
	}
	firewall.Forward = ParsePolicy(output)
	return firewall
}

// ParsePolicy gives the policy of a chain as `iptables -S` lists it, or nothing.
func ParsePolicy(output string) string {
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "-P" {
			return fields[2]
		}
	}
	return ""
}

// ParseSettings reads the lines KEY=value of a file for shells, with or without quotes.
func ParseSettings(text string) map[string]string {
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
	return values
}
