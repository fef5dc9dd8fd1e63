package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/embedded"
)

// uploadTimeout bounds an upload: 7 MB over 1 Mb/s take 56 s.
const uploadTimeout = 5 * time.Minute

// upload stores a program on the node under the name that the start script looks for.
func upload(ctx context.Context, starter Starter, program embedded.Program) error {
	content, err := program.Bytes()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, uploadTimeout, fmt.Errorf("the upload was not done within %s", uploadTimeout))
	defer cancel()
	session, err := open(ctx, starter, uploadScript(program.SHA256))
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(session.process.Stdin, bytes.NewReader(content))
		sent <- errors.Join(err, session.process.Stdin.Close())
	}()
	text, err := session.greet(ctx)
	// Closing frees a copy that nobody reads any more, except on a connection that is dead.
	if err = errors.Join(err, session.giveUp(ctx)); err != nil {
		return fmt.Errorf("upload the agent: %w", err)
	}
	var sendErr error
	select {
	case sendErr = <-sent:
	case <-time.After(closeTimeout):
		sendErr = errors.New("the program could not be sent to its end")
	}
	return uploaded(text, lastLine(session.process.Stderr()), sendErr)
}

// uploaded reads the upload script's answer.
func uploaded(text, stderr string, sendErr error) error {
	word, path, _ := strings.Cut(text, " ")
	said := ""
	if stderr != "" {
		said = " (" + stderr + ")"
	}
	switch word {
	case "uploaded":
		return nil
	case "unwritable":
		return fmt.Errorf("upload the agent: the folder %s cannot be made or written%s: "+
			"the home folder is read-only, full or another user's", path, said)
	case "unwritten":
		return fmt.Errorf("upload the agent: %s could not be written%s", path, said)
	case "unrunnable":
		return fmt.Errorf("upload the agent: programs in %s cannot be run%s: its file system is mounted noexec", path, said)
	case "truncated":
		return errors.Join(fmt.Errorf("upload the agent: %s did not arrive whole%s", path, said), sendErr)
	}
	return fmt.Errorf("upload the agent: the node answered %q", lastLine(text))
}
