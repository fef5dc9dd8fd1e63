package sshx

import (
	"context"
	"errors"
	"io"
)

// maxOutput bounds what Run collects of a command's standard output.
const maxOutput = 1 << 20

// Output is what a finished command left.
type Output struct {
	ExitCode int
	// Stdout is the first 1 MiB, Stderr the last 4 KiB.
	Stdout []byte
	Stderr string
}

// Run runs a command to its end, with stdin (which may be nil) as its standard input. The command
// is killed when the context ends. A non-zero exit code is no error.
func Run(ctx context.Context, c Client, command string, stdin io.Reader) (Output, error) {
	process, err := c.Start(ctx, command)
	if err != nil {
		return Output{}, err
	}
	type result struct {
		output Output
		err    error
	}
	finished := make(chan result, 1)
	go func() {
		output, err := communicate(process, stdin)
		finished <- result{output, err}
	}()
	select {
	case r := <-finished:
		return r.output, r.err
	case <-ctx.Done():
		return Output{ExitCode: -1, Stderr: process.Stderr()}, errors.Join(context.Cause(ctx), process.Close())
	}
}

func communicate(process *Process, stdin io.Reader) (Output, error) {
	fed := make(chan error, 1)
	go func() {
		var err error
		if stdin != nil {
			_, err = io.Copy(process.Stdin, stdin)
		}
		// A command that did not read all of its input has closed the pipe: its exit code tells.
		if closeErr := process.Stdin.Close(); closeErr != nil && !errors.Is(closeErr, io.EOF) {
			err = errors.Join(err, closeErr)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		fed <- err
	}()
	stdout, readErr := io.ReadAll(io.LimitReader(process.Stdout, maxOutput))
	if readErr == nil {
		_, readErr = io.Copy(io.Discard, process.Stdout)
	}
	code, err := process.Wait()
	output := Output{ExitCode: code, Stdout: stdout, Stderr: process.Stderr()}
	if err != nil {
		return output, err
	}
	if readErr != nil {
		return output, readErr
	}
	if code != 0 {
		return output, nil // and whatever became of its input
	}
	return output, <-fed
}
