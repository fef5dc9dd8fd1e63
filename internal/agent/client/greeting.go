package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

// maxNoise bounds, in bytes, what a login shell may print before our first line.
const maxNoise = 64 << 10

// errNoGreeting is the failure of a command that ended, or babbled, without a line of ours.
var errNoGreeting = errors.New("no answer from the agent")

// greeting reads up to our first line and gives what follows the magic in it. Noise is what came
// before, for messages.
func greeting(reader *bufio.Reader) (text, noise string, err error) {
	var before bytes.Buffer
	for before.Len() < maxNoise {
		line, err := reader.ReadSlice('\n')
		if at := bytes.Index(line, []byte(wire.Magic)); at >= 0 && err == nil {
			return strings.TrimRight(string(line[at+len(wire.Magic):]), "\r\n"), before.String(), nil
		}
		before.Write(line)
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return "", before.String(), errNoGreeting
		default:
			return "", before.String(), fmt.Errorf("%w: %w", errNoGreeting, err)
		}
	}
	return "", before.String(), fmt.Errorf("%w within the first %d KiB that the login shell printed", errNoGreeting, maxNoise>>10)
}

// lastLine is the last line of a text that says something, cut to a length fit for a message.
func lastLine(text string) string {
	const longest = 300
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if len(line) > longest {
		line = line[:longest] + "…"
	}
	return line
}
