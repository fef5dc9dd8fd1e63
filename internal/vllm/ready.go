package vllm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/diagnose"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
)

const (
	// lookLines is how much of the log is read at each look; at 2 s a look none is missed.
	lookLines = 400
	// patience is how many looks in a row may fail, or find the same fatal sign, before it counts: a
	// lost connection comes back, and a process that is about to die says why a moment later.
	patience = 2
	// lastWords bounds what is still done for a server after its start failed.
	lastWords = 20 * time.Second
)

// watcher follows one server until it is ready.
type watcher struct {
	*starter
	client *Client
	phase  string
	// told is when the last line was reported.
	told time.Time
	// log as of the last look, and what it says; it is read anew only when it has grown.
	log     string
	judged  string
	finding diagnose.Finding
	// Looks in a row that failed, that found a fatal sign, and that missed a rank.
	blind, fatal, alone int
}

// ready waits until the container runs, every rank's node is alive, /health answers, the model is
// listed and one completion came back.
func (s *starter) ready(ctx context.Context) error {
	w := &watcher{starter: s, client: s.spec.client(s.machine).With(s.key)}
	ticker := time.NewTicker(healthEvery)
	defer ticker.Stop()
	var looked time.Time
	for {
		// A server that has just become healthy is looked at whole, as is one every now and then.
		if time.Since(looked) >= askEvery || w.client.Health(ctx) == nil {
			looked = time.Now()
			done, err := w.look(ctx)
			if done || err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return w.end(ctx, fmt.Sprintf("it was not ready after %s, while %s", w.waited(), w.phase), context.Cause(ctx), false)
		}
	}
}

// look asks everything once. A server that cannot become ready gives an error.
func (w *watcher) look(ctx context.Context) (done bool, err error) {
	container, err := w.engine.Container(ctx, w.id)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return false, w.failed(w.step(), "its container was removed by somebody else after "+w.waited(), err)
	case err == nil && container.Status != running && container.Status != "created":
		return false, w.exited(ctx, container)
	case err == nil:
		w.log, err = w.engine.Logs(ctx, w.id, lookLines)
	}
	if err != nil {
		w.blind++
		if w.blind > patience || ctx.Err() != nil {
			return false, w.failed(w.step(), "it could not be watched, while "+w.phase, err)
		}
		return false, nil
	}
	w.blind = 0
	w.tell()
	if err := w.hopeless(ctx); err != nil {
		return false, err
	}
	if err := w.alive(ctx); err != nil {
		return false, err
	}
	if w.client.Health(ctx) == nil {
		return w.answers(ctx)
	}
	return false, nil // It listens when the model is loaded.
}

// tell reports a new phase and, while there is none, from time to time what the log said last.
func (w *watcher) tell() {
	if phase := Phase(w.log); phase != w.phase {
		w.phase, w.told = phase, time.Now()
		w.report(fmt.Sprintf("%s (%s)", phase, w.waited()))
		return
	}
	if line := lastLine(w.log); line != "" && time.Since(w.told) >= tellEvery {
		w.told = time.Now()
		w.report(fmt.Sprintf("still %s (%s): %s", w.phase, w.waited(), line))
	}
}

// hopeless ends a start whose log shows that waiting will not help.
func (w *watcher) hopeless(ctx context.Context) error {
	if w.log != w.judged {
		w.judged = w.log
		w.finding = w.explain(ctx, w.evidence())
	}
	if !w.finding.Fatal {
		w.fatal = 0
		return nil
	}
	if w.fatal++; w.fatal < patience {
		return nil
	}
	return w.end(ctx, fmt.Sprintf("it can never become ready, as its log says after %s", w.waited()), nil, true)
}

// alive ends a start when a rank's node is gone: vLLM itself may take minutes to notice.
func (w *watcher) alive(ctx context.Context) error {
	if w.cluster.Alive == nil {
		return nil
	}
	err := w.cluster.Alive(ctx)
	if err == nil {
		w.alone = 0
		return nil
	}
	if w.alone++; w.alone < patience && ctx.Err() == nil {
		return nil
	}
	return w.end(ctx, fmt.Sprintf("a rank's node left the Ray cluster after %s, while %s", w.waited(), w.phase), err, true)
}

// answers is the proof: /health alone has been 200 on servers that died at their first request.
func (w *watcher) answers(ctx context.Context) (bool, error) {
	w.report(fmt.Sprintf("asking for a first completion (%s)", w.waited()))
	names, err := w.client.Models(ctx)
	if err == nil && !slices.Contains(names, w.spec.served()) {
		return false, w.end(ctx, fmt.Sprintf("it serves %s and not %s", strings.Join(names, ", "), w.spec.served()), nil, false)
	}
	if err == nil {
		err = w.client.Proof(ctx, w.spec.served())
	}
	if err == nil && w.spec.KeyVersion != 0 && !w.guarded(ctx) {
		return false, w.end(ctx, "it was given an API key, and answers without one: everybody who reaches its port can use it", nil, true)
	}
	if err == nil {
		w.report(fmt.Sprintf("ready after %s", w.waited()))
		return true, nil
	}
	if container, gone := w.engine.Container(ctx, w.id); gone == nil && container.Status != running {
		return false, w.exited(ctx, container)
	}
	return false, w.end(ctx, "/health is 200, but a first completion failed", err, false)
}

// guarded says that the server refuses a question without the key. What fails otherwise is no proof.
func (w *watcher) guarded(ctx context.Context) bool {
	_, err := w.client.With(Key{}).Models(ctx)
	var answer *StatusError
	return errors.As(err, &answer) && answer.Status == http.StatusUnauthorized
}

// exited is the error for a container that ended.
func (w *watcher) exited(ctx context.Context, container engine.Container) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	log, unread := w.engine.Logs(after, w.id, lookLines)
	if unread == nil {
		w.log = log
	}
	evidence := w.evidence()
	logs := w.ranks(after, evidence)
	head := evidence.Nodes[w.machine.Host()]
	head.Container = &diagnose.Container{Status: container.Status, ExitCode: container.ExitCode, OOMKilled: container.OOMKilled}
	evidence.Nodes[w.machine.Host()] = head
	failure := w.failed(w.step(), fmt.Sprintf("its container %s with exit code %d after %s, while %s", container.Status, container.ExitCode, w.waited(), Phase(w.log)), unread)
	failure.Finding = w.explain(after, evidence, logs...)
	failure.Log = tail(w.log, w.spec.Env, w.key)
	return failure
}

// end is the error for a server that runs and is not ready; with remove it is taken away, because it
// holds GPUs for nothing.
func (w *watcher) end(ctx context.Context, seen string, cause error, remove bool) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	failure := w.failed(w.step(), seen, cause)
	evidence := w.evidence()
	logs := w.ranks(after, evidence)
	failure.Finding = w.explain(after, evidence, logs...)
	failure.Log = tail(w.log, w.spec.Env, w.key)
	if remove {
		if err := w.engine.Remove(after, w.id, stopGrace); err != nil {
			failure.Err = errors.Join(failure.Err, err)
		}
	}
	return failure
}

// explain diagnoses the log, with those of the ranks if they were read. Ray is asked for its addresses only
// when there is something to explain.
func (w *watcher) explain(ctx context.Context, evidence diagnose.Evidence, ranks ...diagnose.Log) diagnose.Finding {
	logs := append([]diagnose.Log{{Name: w.spec.ContainerName(), Text: w.log}}, ranks...)
	finding, found := diagnose.ExplainAll(logs, evidence)
	if !found || w.cluster.Addresses == nil {
		return finding
	}
	addresses, err := w.cluster.Addresses(ctx)
	if err != nil {
		return finding // The cause is then worded without them.
	}
	for _, address := range addresses {
		evidence.Ray = append(evidence.Ray, diagnose.RayNode{Address: address, Alive: true, GPUs: 1})
	}
	finding, _ = diagnose.ExplainAll(logs, evidence)
	return finding
}

func (w *watcher) step() string { return "start server " + w.spec.ContainerName() }

// waited is how long the server has been starting, in whole seconds.
func (w *watcher) waited() string { return time.Since(w.began).Round(time.Second).String() }
