package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// ReadOnlyError is an act on a node of which the SSH key may only see, by a line in its
// authorized_keys.
type ReadOnlyError struct{ Host string }

// Error implements error.
func (e *ReadOnlyError) Error() string {
	return e.Host + ": this SSH key may only look: its line in authorized_keys starts the agent with --read-only"
}

// Advice is the next step.
func (e *ReadOnlyError) Advice() string {
	return "Nothing was changed. Such a key is for plans. Apply with a key that may change the node: private_key_file in the provider block or the node, or SPARK_SSH_PRIVATE_KEY_FILE."
}

// Writable implements Machine.
func (m *machine) Writable(ctx context.Context) error {
	helper, err := m.Agent(ctx)
	if err == nil && helper.ReadOnly() {
		err = &ReadOnlyError{Host: m.connection.Host}
	}
	return err
}

// Writable fails with a [*ReadOnlyError] for each machine that may not be changed, before an act begins.
// A machine that does not answer is no reason to fail here: the act finds that out, or goes on without it.
func Writable[Machines ~map[string]Machine](ctx context.Context, machines Machines) error {
	var mutex sync.Mutex
	refused := map[string]error{}
	var group sync.WaitGroup
	for host, machine := range machines {
		group.Go(func() {
			var one *ReadOnlyError
			if errors.As(machine.Writable(ctx), &one) {
				mutex.Lock()
				defer mutex.Unlock()
				refused[host] = one
			}
		})
	}
	group.Wait()
	var all []error
	for _, host := range slices.Sorted(maps.Keys(refused)) {
		all = append(all, refused[host])
	}
	return errors.Join(all...)
}
