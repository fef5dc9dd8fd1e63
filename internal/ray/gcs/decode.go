package gcs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// errWireType says that a known field has another type than it had in the releases we read.
var errWireType = errors.New("unexpected wire type")

// field is one field of a message: Number is set always, and Bytes or Value by its type.
type field struct {
	number int
	kind   protowire.Type
	bytes  []byte
	value  uint64
}

// text is the field as a string.
func (f field) text() (string, error) {
	if f.kind != protowire.BytesType {
		return "", fmt.Errorf("field %d: %w", f.number, errWireType)
	}
	return string(f.bytes), nil
}

// message is the field as an embedded message's bytes.
func (f field) message() ([]byte, error) {
	if f.kind != protowire.BytesType {
		return nil, fmt.Errorf("field %d: %w", f.number, errWireType)
	}
	return f.bytes, nil
}

// integer is the field as a varint.
func (f field) integer() (int, error) {
	if f.kind != protowire.VarintType {
		return 0, fmt.Errorf("field %d: %w", f.number, errWireType)
	}
	return int(int32(f.value)), nil //nolint:gosec // An enum is an int32, in the low bits of the varint.
}

// each visits the fields of a message in order. Unknown numbers are the visitor's to ignore.
func each(message []byte, visit func(field) error) error {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		one := field{number: int(number), kind: kind}
		switch kind {
		case protowire.BytesType:
			one.bytes, size = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			one.value, size = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			one.value, size = protowire.ConsumeFixed64(message)
		default:
			size = protowire.ConsumeFieldValue(number, kind, message)
		}
		if size < 0 {
			return fmt.Errorf("field %d: %w", number, protowire.ParseError(size))
		}
		message = message[size:]
		if err := visit(one); err != nil {
			return err
		}
	}
	return nil
}

// quantity adds one entry of a map<string, double> to the resources.
func quantity(into map[string]float64, entry field) error {
	message, err := entry.message()
	if err != nil {
		return err
	}
	var name string
	var amount float64
	err = each(message, func(f field) error {
		var err error
		switch f.number {
		case 1:
			name, err = f.text()
		case 2:
			if f.kind != protowire.Fixed64Type {
				return fmt.Errorf("amount of %q: %w", name, errWireType)
			}
			amount = math.Float64frombits(f.value)
			if math.IsNaN(amount) || math.IsInf(amount, 0) {
				return fmt.Errorf("amount of %q is %v", name, amount)
			}
		}
		return err
	})
	if err == nil {
		into[name] = amount
	}
	return err
}

// list decodes every embedded message with the given number of a message.
func list[T any](message []byte, number int, decode func([]byte) (T, error)) ([]T, error) {
	var all []T
	err := each(message, func(f field) error {
		if f.number != number {
			return nil
		}
		inner, err := f.message()
		if err != nil {
			return err
		}
		one, err := decode(inner)
		all = append(all, one)
		return err
	})
	return all, err
}

// decodeNodes reads GetAllNodeInfoReply: node_info_list = 2.
func decodeNodes(reply []byte) ([]Node, error) { return list(reply, 2, decodeNode) }

// decodeNode reads GcsNodeInfo.
func decodeNode(message []byte) (Node, error) {
	// The first state is ALIVE, and proto3 leaves zeros out.
	node := Node{Alive: true, Total: map[string]float64{}}
	var death string
	err := each(message, func(f field) error {
		var err error
		switch f.number {
		case 1:
			var id []byte
			id, err = f.message()
			node.ID = hex.EncodeToString(id)
		case 2:
			node.Address, err = f.text()
		case 7:
			var state int
			state, err = f.integer()
			node.Alive = state == 0
		case 8:
			node.Hostname, err = f.text()
		case 11:
			err = quantity(node.Total, f)
		case 23:
			if f.kind != protowire.VarintType {
				return fmt.Errorf("field %d: %w", f.number, errWireType)
			}
			node.Started = f.value
		case 25:
			var head int
			head, err = f.integer()
			node.Head = head != 0
		case 29:
			var info []byte
			if info, err = f.message(); err == nil {
				death, err = decodeDeath(info)
			}
		}
		return err
	})
	if !node.Alive {
		node.DeathReason = death
	}
	return node, err
}

// decodeDeath reads NodeDeathInfo: reason = 1, reason_message = 2.
func decodeDeath(message []byte) (string, error) {
	reason, text := 0, ""
	err := each(message, func(f field) error {
		var err error
		switch f.number {
		case 1:
			reason, err = f.integer()
		case 2:
			text, err = f.text()
		}
		return err
	})
	if text != "" {
		return text, err
	}
	switch reason {
	case 1:
		return "expected termination", err
	case 2:
		return "unexpected termination", err
	case 3:
		return "preempted", err
	case 4:
		return "idle", err
	default:
		return "", err
	}
}

// availability is what GetClusterStatus adds to a node.
type availability struct {
	id        string
	available map[string]float64
}

// decodeStatus reads GetClusterStatusReply: cluster_resource_state = 2, in it node_states = 3.
func decodeStatus(reply []byte) ([]availability, error) {
	states, err := list(reply, 2, func(state []byte) ([]availability, error) {
		return list(state, 3, decodeState)
	})
	var all []availability
	for _, one := range states {
		all = append(all, one...)
	}
	return all, err
}

// decodeState reads NodeState: node_id = 1, available_resources = 4.
func decodeState(message []byte) (availability, error) {
	one := availability{available: map[string]float64{}}
	err := each(message, func(f field) error {
		switch f.number {
		case 1:
			id, err := f.message()
			one.id = hex.EncodeToString(id)
			return err
		case 4:
			return quantity(one.available, f)
		}
		return nil
	})
	return one, err
}

// decodeGroups reads GetAllPlacementGroupReply: placement_group_table_data = 2.
func decodeGroups(reply []byte) ([]PlacementGroup, error) {
	groups, err := list(reply, 2, decodeGroup)
	var kept []PlacementGroup
	for _, group := range groups {
		if group.State != GroupRemoved {
			kept = append(kept, group)
		}
	}
	return kept, err
}

// decodeGroup reads PlacementGroupTableData.
func decodeGroup(message []byte) (PlacementGroup, error) {
	var group PlacementGroup
	err := each(message, func(f field) error {
		var err error
		switch f.number {
		case 1:
			var id []byte
			id, err = f.message()
			group.ID = hex.EncodeToString(id)
		case 2:
			group.Name, err = f.text()
		case 3:
			var bundle []byte
			if bundle, err = f.message(); err == nil {
				var resources map[string]float64
				resources, err = decodeBundle(bundle)
				group.Bundles = append(group.Bundles, resources)
			}
		case 5:
			var state int
			state, err = f.integer()
			group.State = GroupState(state)
		}
		return err
	})
	return group, err
}

// decodeBundle reads Bundle: unit_resources = 2.
func decodeBundle(message []byte) (map[string]float64, error) {
	resources := map[string]float64{}
	err := each(message, func(f field) error {
		if f.number == 2 {
			return quantity(resources, f)
		}
		return nil
	})
	return resources, err
}
