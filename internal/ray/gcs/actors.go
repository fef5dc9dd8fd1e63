package gcs

import "context"

// callActors asks for the actors of living jobs. Only an act asks it: an agent that may only look
// does not pass it on.
const callActors = "/ray.rpc.ActorInfoGcsService/GetAllActorInfo"

// Actor is a Python process of a job's that lives on a node; vLLM's ranks are such.
type Actor struct {
	// Class is its Python class, PID its process in the node's container.
	Class string
	PID   int
	// Address of its node.
	Address string
}

// actorAlive is the state of a living actor, by Ray's number.
const actorAlive = 2

// Actors are those that live now.
func (c *Client) Actors(ctx context.Context) ([]Actor, error) {
	return ask(ctx, c, c.credential, callActors, decodeActors)
}

// decodeActors reads GetAllActorInfoReply: actor_table_data = 2.
func decodeActors(reply []byte) ([]Actor, error) {
	all, err := list(reply, 2, decodeActor)
	var alive []Actor
	for _, one := range all {
		if one != (Actor{}) {
			alive = append(alive, one)
		}
	}
	return alive, err
}

// decodeActor reads ActorTableData: state = 6, address = 9 (in it ip_address = 2), pid = 16, class_name =
// 23. One that does not live is empty.
func decodeActor(message []byte) (Actor, error) {
	var actor Actor
	state := 0
	err := each(message, func(f field) error {
		var err error
		switch f.number {
		case 6:
			state, err = f.integer()
		case 9:
			var address []byte
			if address, err = f.message(); err == nil {
				actor.Address, err = decodeAddress(address)
			}
		case 16:
			actor.PID, err = f.integer()
		case 23:
			actor.Class, err = f.text()
		}
		return err
	})
	if state != actorAlive {
		return Actor{}, err
	}
	return actor, err
}

// decodeAddress reads Address: ip_address = 2.
func decodeAddress(message []byte) (string, error) {
	text := ""
	err := each(message, func(f field) error {
		if f.number != 2 {
			return nil
		}
		var err error
		text, err = f.text()
		return err
	})
	return text, err
}
