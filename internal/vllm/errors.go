package vllm

import (
	"fmt"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/diagnose"
	"github.com/spark-stack/terraform-provider-spark/internal/identity"
)

// Error is a step of a server's life that failed.
type Error struct {
	// Host is the head's, Step what was tried: "start server vllm-qwen".
	Host, Step string
	// Seen is one sentence.
	Seen string
	// Finding is the cause with the next step; its Row is 0 if none is known.
	Finding diagnose.Finding
	// Log is the end of the server's log, without secrets; empty if it never ran.
	Log string
	Err error
}

// Error implements error: everything but the log.
func (e *Error) Error() string {
	text := e.Host + ": " + e.Step + ": " + e.Seen
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Finding.Cause != "" {
		text = strings.TrimSuffix(text, ".") + ". " + e.Finding.String()
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReleaseError says that the server is gone, but that Ray did not give its GPUs back in time. The
// next start waits for them again.
type ReleaseError struct {
	Host string
	// Err is Ray's last answer.
	Err error
}

// Error implements error.
func (e *ReleaseError) Error() string {
	return fmt.Sprintf("%s: the server is removed, but its GPUs were not given back within %s: %v", e.Host, releaseLimit, e.Err)
}

// Unwrap gives the cause.
func (e *ReleaseError) Unwrap() error { return e.Err }

// TakenError says that somebody else has what a server needs on the head's node: the name of its
// container, or its port.
type TakenError struct {
	Host string
	// Container is its name, if that is taken.
	Container string
	// Port, if that is taken; Hostname is the node's.
	Port     int
	Hostname string
}

// Error implements error.
func (e *TakenError) Error() string {
	if e.Container != "" {
		return fmt.Sprintf("%s: container %s was not made by this provider for this deployment, so it is not touched; remove it (docker rm -f %s), or choose another name",
			e.Host, e.Container, e.Container)
	}
	return fmt.Sprintf("%s: port %d is taken by another program on %s (see: sudo ss -ltnp 'sport = :%d'); stop it, or choose another port",
		e.Host, e.Port, e.Hostname, e.Port)
}

// Attribute of the resource that decides what is taken.
func (e *TakenError) Attribute() string {
	if e.Container != "" {
		return "name"
	}
	return "port"
}

// logTail is how many lines of the log an error carries.
const logTail = 40

// tail is the end of a log for an error: plain, short, and without secrets: neither the values of secret
// variables nor what looks like one.
func tail(log string, env map[string]string, key Key) string {
	log = diagnose.Plain(log)
	if key.text() != "" {
		log = strings.ReplaceAll(log, key.text(), key.String())
	}
	for name, value := range env {
		if identity.CarriesSecret(name) && value != "" {
			log = strings.ReplaceAll(log, value, "(hidden)")
		}
	}
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return diagnose.Mask(strings.Join(lines[max(0, len(lines)-logTail):], "\n"))
}
