package hosttest

import (
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// The field numbers are those of Ray's gcs_service.proto, gcs.proto and autoscaler.proto, equal in
// 2.53 and 2.60.

type message []byte

func (m *message) bytes(field protowire.Number, value []byte) {
	*m = protowire.AppendTag(*m, field, protowire.BytesType)
	*m = protowire.AppendBytes(*m, value)
}

func (m *message) text(field protowire.Number, value string) { m.bytes(field, []byte(value)) }

func (m *message) number(field protowire.Number, value uint64) {
	if value == 0 {
		return // proto3 leaves zero values out.
	}
	*m = protowire.AppendTag(*m, field, protowire.VarintType)
	*m = protowire.AppendVarint(*m, value)
}

// resources is a map<string, double>.
func (m *message) resources(field protowire.Number, values map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var entry message
		entry.text(1, name)
		entry = protowire.AppendTag(entry, 2, protowire.Fixed64Type)
		entry = protowire.AppendFixed64(entry, math.Float64bits(values[name]))
		m.bytes(field, entry)
	}
}

// total are the node's resources; available leaves out what is used up, as Ray does.
func (n *rayNode) total() map[string]float64 {
	resources := map[string]float64{
		"CPU": 2, "memory": float64(n.instance.host.memory[1]), "object_store_memory": 1 << 30,
		"node:" + n.address: 1,
	}
	if n.gpus > 0 {
		resources["GPU"] = float64(n.gpus)
		resources["accelerator_type:GB10"] = 1
	}
	if n.isHead() {
		resources["node:__internal_head__"] = 1
	}
	return resources
}

func (n *rayNode) available() map[string]float64 {
	resources := n.total()
	resources["GPU"] -= float64(n.used())
	if resources["GPU"] <= 0 {
		delete(resources, "GPU")
	}
	return resources
}

// nodeTable is a GetAllNodeInfoReply.
func (n *rayNode) nodeTable() []byte {
	var reply message
	for _, member := range n.members {
		var info message
		info.bytes(1, member.id)
		info.text(2, member.address)
		if !member.alive {
			info.number(7, 1)
		}
		info.text(8, member.instance.host.name)
		if member.alive {
			info.resources(11, member.total())
		}
		if member.isHead() {
			info.number(25, 1)
		}
		if !member.alive {
			var death message
			death.number(1, 2)
			death.text(2, member.reason)
			info.bytes(29, death)
		}
		reply.bytes(2, info)
	}
	return reply
}

// clusterStatus is a GetClusterStatusReply.
func (n *rayNode) clusterStatus() []byte {
	const running, dead, idle = 1, 2, 3
	var state message
	for _, member := range n.members {
		var node message
		node.bytes(1, member.id)
		if member.alive {
			node.resources(4, member.available())
			node.resources(5, member.total())
		}
		switch {
		case !member.alive:
			node.number(8, dead)
		case member.used() > 0:
			node.number(8, running)
		default:
			node.number(8, idle)
		}
		node.text(10, member.address)
		state.bytes(3, node)
	}
	for _, group := range n.groups {
		if group.created {
			continue
		}
		var gang message
		for _, part := range group.bundles {
			var request message
			request.resources(1, part.resources)
			gang.bytes(1, request)
		}
		gang.text(2, "placement group is pending")
		state.bytes(5, gang)
	}
	var reply message
	reply.bytes(2, state)
	return reply
}

// placementGroups is a GetAllPlacementGroupReply.
func (n *rayNode) placementGroups() []byte {
	var reply message
	for _, group := range n.groups {
		var data message
		data.bytes(1, group.id)
		for i, part := range group.bundles {
			var identity, one message
			identity.bytes(1, group.id)
			identity.number(2, uint64(i))
			one.bytes(1, identity)
			one.resources(2, part.resources)
			if part.node != nil {
				one.bytes(3, part.node.id)
			}
			data.bytes(3, one)
		}
		if group.created {
			data.number(5, 2)
		}
		reply.bytes(2, data)
	}
	return reply
}
