package server

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// trustListener refuses a port on which an account listens that is neither root nor our own. Every
// listener of the port counts, whatever its address: the kernel prefers the more special one.
func (o Options) trustListener(target netip.AddrPort) error {
	listeners, err := o.facts().ListeningSockets()
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
