package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/files"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/filter"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/transfer"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

const (
	// maxRequest bounds the body of a request with a manifest, in bytes: 100,000 files are about 20 MB.
	maxRequest = 64 << 20
	// maxQuestion bounds the body of all others, which name a folder or hold a secret. Whoever may only
	// look, and sends many at once, must not fill the memory that a model needs.
	maxQuestion = 64 << 10
	// maxStamps bounds a question about files by name, in bytes; the client asks for 4096 at once at most.
	maxStamps = 1 << 20
)

// handler answers the questions and, unless it may only look, the calls that change something.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+wire.PathFacts, answer(s.facts))
	mux.Handle("POST "+wire.PathList, answerUpTo(maxStamps, s.list))
	mux.Handle("POST "+wire.PathDigest, stream(maxStamps, s.digest))
	mux.Handle("POST "+wire.PathContainers, answer(s.containers))
	if s.options.ReadOnly {
		mux.HandleFunc("/", refuse)
	} else {
		mux.Handle("POST "+wire.PathClean, answer(s.clean))
		mux.Handle("POST "+wire.PathUninstall, answer(s.uninstall))
		mux.Handle("POST "+wire.PathSecretRead, answer(s.readSecret))
		mux.Handle("POST "+wire.PathSecretWrite, answer(s.writeSecret))
		mux.Handle("POST "+wire.PathSecretRemove, answer(s.removeSecret))
		mux.Handle("POST "+wire.PathReceive, stream(maxRequest, s.receive))
		mux.Handle("POST "+wire.PathSend, stream(maxRequest, s.send))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.options.Asked != nil {
			s.options.Asked(r.RequestURI)
		}
		if !s.enter() {
			return
		}
		defer s.calls.Done()
		switch { // before the mux, which would clean the path that the filter is to see
		case strings.HasPrefix(r.RequestURI, wire.PrefixEngine+"/"):
			pass(w, r, wire.PrefixEngine, s.engine)
		case strings.HasPrefix(r.RequestURI, wire.PrefixProgram+"/"):
			pass(w, r, wire.PrefixProgram, s.program)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// refuse answers for an agent that may only look.
func refuse(w http.ResponseWriter, _ *http.Request) {
	fail(w, http.StatusForbidden, &refusal{code: agent.RefusedReadOnly, err: errors.New("this agent answers questions only")})
}

// answer makes a handler of a call with one answer.
func answer[Request, Answer any](call func(context.Context, Request) (Answer, error)) http.Handler {
	return answerUpTo(maxQuestion, call)
}

// answerUpTo is answer with another bound of the request's body, in bytes.
func answerUpTo[Request, Answer any](most int64, call func(context.Context, Request) (Answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request Request
		if err := read(w, r, most, &request); err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		result, err := call(r.Context(), request)
		if err != nil {
			fail(w, http.StatusUnprocessableEntity, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// A failed write is a client that is gone; nobody is left to tell.
		_ = json.NewEncoder(w).Encode(result)
	})
}

// stream makes a handler of a call with events, each sent at once.
func stream[Request any](most int64, call func(context.Context, Request, transfer.Report) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request Request
		if err := read(w, r, most, &request); err != nil {
			fail(w, http.StatusBadRequest, err)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		encoder, controller := json.NewEncoder(w), http.NewResponseController(w)
		report := func(event agent.TransferEvent) {
			// A client that is gone ends the call through its context.
			if encoder.Encode(event) == nil {
				_ = controller.Flush()
			}
		}
		if err := call(r.Context(), request, report); err != nil {
			failure := describe(err)
			report(agent.TransferEvent{Error: failure.Message, Code: failure.Code})
			return
		}
		report(agent.TransferEvent{Done: true})
	})
}

func read(w http.ResponseWriter, r *http.Request, most int64, request any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	if err := decoder.Decode(request); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	return nil
}

func fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(describe(err)) // As in answer.
}

// describe finds the class of a failure.
func describe(err error) wire.Failure {
	failure := wire.Failure{Message: err.Error()}
	var failed *transfer.Error
	var refused *refusal
	var filtered *filter.RefusedError
	switch {
	case errors.As(err, &refused):
		failure.Code = refused.code
	case errors.As(err, &filtered):
		failure.Code = agent.RefusedFilter
	case errors.As(err, &failed):
		failure.Code = failed.Code
	case errors.Is(err, fs.ErrPermission):
		failure.Code = agent.TransferDenied
	}
	return failure
}

func (s *server) facts(ctx context.Context, _ struct{}) (agent.Facts, error) {
	return s.options.facts().Gather(ctx)
}

func (s *server) list(ctx context.Context, request agent.ListRequest) (agent.Listing, error) {
	named, real, err := s.options.shown(request.Folder)
	if err != nil {
		return agent.Listing{}, err
	}
	listing, err := files.List(ctx, real, named, request)
	if err != nil {
		return agent.Listing{}, s.denied(err)
	}
	listing.FreeBytes, err = s.options.free(real)
	return listing, err
}

func (s *server) digest(ctx context.Context, request agent.DigestRequest, report transfer.Report) error {
	named, real, err := s.options.shown(request.Folder)
	if err != nil {
		return err
	}
	return s.denied(files.Digest(ctx, real, named, request.Files, report))
}

// denied adds the user to a failure of permissions.
func (s *server) denied(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err // Also nil.
	}
	name, _ := s.options.account()
	return fmt.Errorf("%w (as user %s)", err, name)
}

func (s *server) clean(ctx context.Context, request wire.FolderRequest) (struct{}, error) {
	named, real, err := s.options.folder(request.Folder)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, s.denied(transfer.Clean(ctx, real, named))
}

// end is the side of a transfer that lies on this node.
func (s *server) end(folder string) (transfer.End, error) {
	named, real, err := s.options.folder(folder)
	name, _ := s.options.account()
	return transfer.End{
		Folder: named, Real: real, User: name, Free: s.options.free,
		ConnectTimeout: s.options.ConnectTimeout, StallTimeout: s.options.StallTimeout,
	}, err
}

func (s *server) receive(ctx context.Context, request agent.ReceiveRequest, report transfer.Report) error {
	end, err := s.end(request.Folder)
	if err != nil {
		return err
	}
	return transfer.Receive(ctx, end, request, report)
}

func (s *server) send(ctx context.Context, request agent.SendRequest, report transfer.Report) error {
	end, err := s.end(request.Folder)
	if err != nil {
		return err
	}
	return transfer.Send(ctx, end, request, report)
}
