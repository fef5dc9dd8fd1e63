package fleet

import (
	"context"
	"sync"
)

// once is a single-flight value: the first caller gets it, the others wait for that answer, each
// only as long as its own context lives. A failure is not kept: the next caller tries again.
type once[T any] struct {
	mutex  sync.Mutex
	flight chan struct{} // closed when the flight under way ends
	value  T
	filled bool
}

// get returns the kept value or makes it.
func (o *once[T]) get(ctx context.Context, produce func(context.Context) (T, error)) (T, error) {
	var zero T
	for {
		o.mutex.Lock()
		if o.filled {
			defer o.mutex.Unlock()
			return o.value, nil
		}
		if o.flight == nil {
			flight := make(chan struct{})
			o.flight = flight
			o.mutex.Unlock()
			value, err := produce(ctx)
			o.mutex.Lock()
			defer o.mutex.Unlock()
			// forget() during the flight replaced o.flight: the answer is for this caller only.
			if o.flight == flight {
				o.flight = nil
				if err == nil {
					o.value, o.filled = value, true
				}
			}
			close(flight)
			return value, err
		}
		flight := o.flight
		o.mutex.Unlock()
		select {
		case <-flight:
		case <-ctx.Done():
			return zero, ctx.Err()
		}
	}
}

// forget drops the value; a flight under way answers its own caller only.
func (o *once[T]) forget() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var zero T
	o.value, o.filled, o.flight = zero, false, nil
}

// peek returns the value if there is one.
func (o *once[T]) peek() (value T, ok bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.value, o.filled
}

// discard drops the value if it is stale, and returns it.
func (o *once[T]) discard(stale func(T) bool) (dropped T, ok bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !o.filled || !stale(o.value) {
		return dropped, false
	}
	dropped = o.value
	var zero T
	o.value, o.filled = zero, false
	return dropped, true
}
