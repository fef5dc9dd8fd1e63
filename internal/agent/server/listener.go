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
	text, err := o.listeners()
	if err != nil {
		return fmt.Errorf("find who listens at %s: %w", target, err)
	}
	found := false
	for _, socket := range facts.ParseListening(text) {
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

func (o Options) listeners() (string, error) {
	if o.Listeners != nil {
		return o.Listeners()
	}
	four, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	six, err := os.ReadFile("/proc/net/tcp6")
	if err != nil && !errors.Is(err, os.ErrNotExist) { // there is none where IPv6 is off
		return "", err
	}
	return string(four) + "\n" + string(six), nil
}
