package server

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/facts"
)

// trustListener refuses a port on which an account listens that is neither root nor our own. Every
// listener of the port counts, whatever its address: the kernel prefers the more special one.
func (o Options) trustListener(target netip.AddrPort) error {
	listeners, err := o.listeners()
	if err != nil {
		return fmt.Errorf("find who listens at %s: %w", target, err)
	}
	found := false
	for _, socket := range listeners {
		if socket.Port != int(target.Port()) {
			continue
		}
		if socket.UID != 0 && socket.UID != os.Getuid() {
			return &refusal{
				code: agent.RefusedFilter,
				err:  fmt.Errorf("the user with id %d listens at port %d: Ray's token is for a GCS of root or of the login user", socket.UID, target.Port()),
			}
		}
		found = true
	}
	if !found {
		return &refusal{code: agent.RefusedConnect, err: errors.New("nothing listens at " + target.String())}
	}
	return nil
}

func (o Options) listeners() ([]agent.Listener, error) {
	if o.Listeners != nil {
		return o.Listeners()
	}
	var list []agent.Listener
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) && file != "/proc/net/tcp" {
			continue // IPv6 is off
		}
		if err != nil {
			return nil, err
		}
		for _, socket := range facts.ParseListening(string(text)) {
			list = append(list, socket.Listener)
		}
	}
	return list, nil
}
