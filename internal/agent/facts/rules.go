package facts

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// The attributes and flags of linux/fib_rules.h that golang.org/x/sys/unix has no names for.
const (
	fraDestination = 1
	fraSource      = 2
	fraIn          = 3
	fraPriority    = 6
	fraMark        = 10
	fraTunnel      = 12
	fraSuppress    = 14
	fraTable       = 15
	fraMask        = 16
	fraOut         = 17
	fraL3MDev      = 19
	fraUID         = 20
	fraIPProtocol  = 22
	fraSourcePort  = 23
	fraPort        = 24

	ruleInvert = 2 // FIB_RULE_INVERT
)

// otherSelectors are those by which a packet is told apart and we cannot; L3MDEV is a rule for VRFs.
var otherSelectors = map[uint16]string{
	fraTunnel: "tun_id", fraL3MDev: "l3mdev", fraUID: "uidrange", fraIPProtocol: "ipproto", fraSourcePort: "sport", fraPort: "dport",
}

func parseRule(head [headLength]byte, attributes map[uint16][]byte) agent.Rule {
	rule := agent.Rule{
		Priority: number(attributes[fraPriority]),
		Not:      binary.NativeEndian.Uint32(head[8:])&ruleInvert != 0,
		In:       text(attributes[fraIn]), Out: text(attributes[fraOut]),
		Table: table(head, attributes, fraTable), LongerThan: -1,
	}
	if head[1] > 0 {
		rule.To = prefix(attributes[fraDestination], head[1])
	}
	if head[2] > 0 {
		rule.From = prefix(attributes[fraSource], head[2])
	}
	if mark, found := attributes[fraMark]; found && len(mark) == 4 {
		rule.Mark, rule.Mask = binary.NativeEndian.Uint32(mark), ^uint32(0)
		if mask := attributes[fraMask]; len(mask) == 4 {
			rule.Mask = binary.NativeEndian.Uint32(mask)
		}
	}
	if suppress := attributes[fraSuppress]; len(suppress) == 4 {
		rule.LongerThan = int(int32(binary.NativeEndian.Uint32(suppress))) //nolint:gosec // -1 is the kernel's own word for none.
	}
	switch head[7] {
	case unix.FR_ACT_TO_TBL:
		rule.Action = agent.RuleLookup
	case unix.FR_ACT_NOP:
		rule.Action = agent.RuleNop
	case unix.FR_ACT_BLACKHOLE:
		rule.Action = agent.RouteBlackhole
	case unix.FR_ACT_UNREACHABLE:
		rule.Action = agent.RouteUnreachable
	case unix.FR_ACT_PROHIBIT:
		rule.Action = agent.RouteProhibit
	default:
		rule.Other = "goto"
	}
	if head[3] != 0 {
		rule.Other = "tos"
	}
	for kind, name := range otherSelectors {
		// A rule that is not for tunnels has the id 0.
		if value, found := attributes[kind]; found && len(bytes.Trim(value, "\x00")) > 0 {
			rule.Other = max(rule.Other, name)
		}
	}
	return rule
}

// text reads a string that ends with a zero byte.
func text(data []byte) string {
	before, _, _ := bytes.Cut(data, []byte{0})
	return string(before)
}
