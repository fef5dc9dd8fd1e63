package node

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// Severity of a finding.
type Severity string

// An Error cannot work. A Warning works, and hurts.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding is something about the nodes that gets in the way of a deployment.
type Finding struct {
	Severity Severity
	// Row is the number of the failure in the catalogue that the rules follow.
	Row int
	// Hosts are those concerned, as Member names them.
	Hosts []string
	// Summary is one line. Cause is what was seen and what comes of it, Fix what to do.
	Summary, Cause, Fix string
}

// Member is a node of a cluster to be.
type Member struct {
	// Host names it in findings; sentences use its own name.
	Host string
	// Address is the identity address; empty while unknown.
	Address string
	Facts   agent.Facts
	// Ours are the ids of the provider's containers on it: what runs in them is no intruder.
	Ours []string
}

// Cluster is what the nodes are judged for.
type Cluster struct {
	Members []Member
	// WeightsDir is mounted in every container; "~/" is each user's home.
	WeightsDir string
	// Claims says that the cluster takes the GPUs now, so that others on them are in its way.
	Claims bool
}

// PreflightOne judges one machine for itself.
func PreflightOne(member Member) []Finding {
	var findings []Finding
	for _, rule := range []func(Member) *Finding{
		contiguousMemory, verbsMissing, pciDegraded, slowLink, toolkitMissing, desktop, diskFull, clockSkew, memoryOverride,
	} {
		if finding := rule(member); finding != nil {
			finding.Hosts = []string{member.Host}
			findings = append(findings, *finding)
		}
	}
	return findings
}

// Preflight judges the nodes of a cluster as one: identity, the ways between them, and what must be
// equal. What PreflightOne says of each machine is not repeated. The order is that of the members,
// errors first.
func Preflight(cluster Cluster) []Finding {
	var findings []Finding
	add := func(hosts []string, finding *Finding) {
		if finding != nil {
			finding.Hosts = hosts
			findings = append(findings, *finding)
		}
	}
	known := make([]placed, 0, len(cluster.Members))
	for _, member := range cluster.Members {
		if member.Address == "" {
			continue
		}
		at, finding := place(member)
		add([]string{member.Host}, finding)
		if finding == nil {
			known = append(known, at)
		}
	}
	for _, one := range known {
		for _, rule := range []func(placed, []placed) *Finding{
			overlay, wireless, secondInterface, wrongWay, relayOff, missingGID, halfUnused, inputClosed,
		} {
			add([]string{one.Host}, rule(one, known))
		}
	}
	for _, rule := range []func([]placed) ([]string, *Finding){sameAddress, otherSubnet, linkLocal, packetSizes} {
		add(rule(known))
	}
	for _, rule := range []func(Cluster) ([]string, *Finding){machineTwice, architectures, drivers, homes} {
		add(rule(cluster))
	}
	if cluster.Claims {
		for _, member := range cluster.Members {
			add([]string{member.Host}, otherRay(member))
			add([]string{member.Host}, gpuTaken(member))
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	return findings
}

// placed is a member whose identity address is on an interface that is up.
type placed struct {
	Member
	address netip.Addr
	prefix  netip.Prefix
	device  agent.Interface
}

// place finds the interface of a member's identity address.
func place(member Member) (placed, *Finding) {
	address, err := netip.ParseAddr(member.Address)
	if err != nil {
		return placed{}, nil // The declaration is checked for that.
	}
	for _, device := range member.Facts.Interfaces {
		for _, prefix := range device.Addresses {
			if prefix.Addr().Unmap() != address.Unmap() {
				continue
			}
			if device.Up {
				return placed{Member: member, address: address.Unmap(), prefix: prefix.Masked(), device: device}, nil
			}
			return placed{}, &Finding{
				Severity: Error, Row: 7, Summary: fmt.Sprintf("%s: interface %s is down", member.name(), device.Name),
				Cause: fmt.Sprintf("%s has its identity address %s on %s, which is down or has no cable: no other node reaches it.", member.name(), address, device.Name),
				Fix:   fmt.Sprintf("Plug the cable in and set the interface up (sudo ip link set %s up), or choose another fabric_address.", device.Name),
			}
		}
	}
	return placed{}, &Finding{
		Severity: Error, Row: 12, Summary: fmt.Sprintf("%s does not have %s", member.name(), address),
		Cause: fmt.Sprintf("No interface of %s has its identity address %s; it has %s. NetworkManager drops addresses that were set by hand, at the latest when the machine restarts.", member.name(), address, Addresses(member.Facts)),
		Fix:   "Restore it there and make it last (a file in /etc/netplan, mode 600), or choose another fabric_address.",
	}
}

// name is how sentences call a member.
func (m Member) name() string { return cmp.Or(m.Facts.Hostname, m.Host) }

// names lists members for a sentence, the first few of many.
func names[T interface{ name() string }](members []T) string {
	const shown = 3
	var list []string
	for _, member := range members[:min(shown, len(members))] {
		list = append(list, member.name())
	}
	if more := len(members) - shown; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

func (m Member) host() string { return m.Host }

// hosts of members.
func hosts[T interface{ host() string }](members []T) []string {
	list := make([]string, len(members))
	for i, member := range members {
		list[i] = member.host()
	}
	return list
}
