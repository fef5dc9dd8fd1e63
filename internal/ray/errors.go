package ray

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/diagnose"
	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

// Error is a failed step on one host.
type Error struct {
	// Host is the machine as the user wrote it, Step what was tried: "read facts", "create container ray-pair".
	Host, Step string
	// Cause is what was seen.
	Cause error
	// Evidence is the last part of a container's log, if there is one.
	Evidence string
	// Finding is what that log says of the cause; empty if it says nothing.
	Finding diagnose.Finding
	// Advice is the next step for a person; may be empty when the cause has its own.
	Advice string
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Host + ": " + e.Step + ": " + e.Cause.Error()
	if e.Finding.Cause != "" {
		text = strings.TrimSuffix(text, ".") + ". " + e.Finding.String()
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ErrForeign is the cause when a container of the cluster's name lacks the provider's labels.
var ErrForeign = errors.New("the container was not made by this provider")

// GateError is a cluster that is up and not as declared: no server may start on it.
type GateError struct {
	Findings []Finding
	// Unanswered is why the GCS could not be asked, if it could not.
	Unanswered error
}

// Error implements error.
func (e *GateError) Error() string {
	var sentences []string
	for _, finding := range e.Findings {
		sentences = append(sentences, finding.Sentence)
	}
	if e.Unanswered != nil {
		sentences = append(sentences, e.Unanswered.Error())
	}
	return strings.Join(sentences, "; ")
}

// Unwrap gives the reason why the GCS was not asked.
func (e *GateError) Unwrap() error { return e.Unanswered }

// ExitError is a container that ended while it was waited for.
type ExitError struct {
	Container string
	Status    string
	ExitCode  int
	OOMKilled bool
}

// Error implements error.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("container %s is %s with code %d", e.Container, e.Status, e.ExitCode)
	if e.OOMKilled {
		text += ", killed for lack of memory"
	}
	return text
}

// late adds the way out to an error that is there because the resource's own time was over. What
// else could be advised was not proved to be the reason.
func late(ctx context.Context, err error) error {
	var failed *Error
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.As(err, &failed) {
		failed.Advice = "The time that the resource allows was over. The next apply goes on from what is there; for more time raise its timeouts { create = ..., update = ... }."
	}
	return err
}

// unauthenticated says whether the GCS refused us for want of a token.
func unauthenticated(err error) bool {
	var typed *gcs.Error
	return errors.As(err, &typed) && typed.Kind == gcs.Unauthenticated
}
