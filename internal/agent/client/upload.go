package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/embedded"
)

// uploadTimeout bounds an upload: 8 MB over 1 Mb/s take 64 s.
const uploadTimeout = 5 * time.Minute

// upload stores a program on the node under the name that the start script looks for, and tells where.
// A folder that turns out to be full is passed over for the next.
func (b *bootstrap) upload(ctx context.Context, w way, program embedded.Program) (string, error) {
	content, err := program.Bytes()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, uploadTimeout, fmt.Errorf("the upload was not done within %s", uploadTimeout))
	defer cancel()
	var reasons []string
	for passed := 0; ; {
		got, err := b.send(ctx, w, program.SHA256, content, passed)
		if err != nil {
			return "", fmt.Errorf("upload the agent: %w", err)
		}
		switch {
		case got.path != "":
			return got.path, nil
		case got.index <= passed:
			return "", b.noFolder(append(reasons, got.reason))
		}
		reasons = append(reasons, got.reason)
		passed = got.index
	}
}

// noFolder says why none of the folders takes the program.
func (b *bootstrap) noFolder(reasons []string) error {
	reason := strings.Join(reasons, "; ")
	if b.folders.given != "" {
		return &StartError{Kind: StartFolder, Message: "upload the agent: agent_dir cannot be used: " + reason}
	}
	return &StartError{Kind: StartNoFolder, Message: "upload the agent: no folder on the node takes it: " + reason}
}

// stored is the upload script's answer: the program's path; or why nothing was stored, and with an
// index the number of the candidate which failed after the program had been read.
type stored struct {
	path   string
	reason string
	index  int
}

// send runs the upload script once.
func (b *bootstrap) send(ctx context.Context, w way, digest string, content []byte, passed int) (stored, error) {
	token := make([]byte, 6)
	_, _ = rand.Read(token) // It never fails.
	script := uploadScript(b.folders, digest, hex.EncodeToString(token), len(content), passed)
	session, err := open(ctx, b.starter, w, script)
	if err != nil {
		return stored{}, err
	}
	go func() {
		// How far it came is the script's to say: it may have enough before the end.
		_, _ = io.Copy(session.process.Stdin, bytes.NewReader(content))
		_ = session.process.Stdin.Close()
	}()
	text, err := session.greet(ctx)
	// Closing frees a copy that nobody reads any more, except on a connection that is dead.
	if err = errors.Join(err, session.giveUp(ctx)); err != nil {
		return stored{}, err
	}
	return answered(text, len(content))
}

// answered reads the upload script's answer.
func answered(text string, size int) (stored, error) {
	word, rest, _ := strings.Cut(text, " ")
	number, path, _ := strings.Cut(rest, " ")
	switch word {
	case "uploaded":
		return stored{path: rest}, nil
	case "unusable":
		return stored{reason: strings.TrimSpace(rest)}, nil
	case "unwritten":
		index, err := strconv.Atoi(number)
		return stored{reason: strings.TrimSpace(path), index: index}, err
	case "unrunnable":
		return stored{}, &StartError{Kind: StartUnrunnable, Message: "the program arrived whole and does not run there: " + rest}
	case "truncated":
		return stored{}, &StartError{Kind: StartCut, Message: fmt.Sprintf("%s of %d bytes arrived in %s", number, size, path)}
	}
	return stored{}, fmt.Errorf("the node answered %q", lastLine(text))
}
