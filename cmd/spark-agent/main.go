// Command spark-agent is the helper that runs on a node while a provider is connected to it. It is
// uploaded and started by the provider, speaks on its standard input and output, and ends with them.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/server"
)

const usage = `usage: spark-agent serve [--read-only] [--docker-socket PATH] [--folder PATH]… | version | --sha256

serve     answer a provider on standard input and output
          --read-only            answer questions only: for command="…" in authorized_keys
          --docker-socket PATH   the one engine that --read-only shows (default ` + defaultSocket + `)
          --folder PATH          a folder that --read-only lists, with all below; once for each
                                 (default: all that the user may read)
version   print the protocol and the platform
--sha256  print the digest of this program`

// defaultSocket is where a Docker engine listens unless it was told otherwise.
const defaultSocket = "/var/run/docker.sock"

func main() {
	err := run(os.Args[1:])
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "spark-agent:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong arguments")

// run does one command. SIGHUP and SIGPIPE keep their meaning, which is the end: unfinished copies
// stay for the next try, and nothing else is ever left on the node. What the environment says, such as
// SSH_ORIGINAL_COMMAND beside a forced command, is never read as one.
func run(arguments []string) error {
	if len(arguments) == 0 {
		return errUsage
	}
	switch command, rest := arguments[0], arguments[1:]; {
	case command == "serve":
		return serve(rest)
	case len(rest) > 0:
		return errUsage
	case command == "version":
		_, err := fmt.Printf("spark-agent protocol %d %s/%s %s\n", agent.ProtocolVersion, runtime.GOOS, runtime.GOARCH, runtime.Version())
		return err
	case command == "--sha256":
		return digest()
	}
	return errUsage
}

func serve(arguments []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	readOnly := flags.Bool("read-only", false, "")
	socket := flags.String("docker-socket", defaultSocket, "")
	var folders []string
	flags.Func("folder", "", func(folder string) error {
		folders = append(folders, folder)
		return nil
	})
	if err := flags.Parse(arguments); err != nil || flags.NArg() > 0 || !strings.HasPrefix(*socket, "/") {
		return errUsage
	}
	return server.Serve(context.Background(), stdio{os.Stdin, os.Stdout}, server.Options{Log: os.Stderr, ReadOnly: *readOnly, DockerSocket: *socket, Folders: folders})
}

// digest prints the digest of the running file, by which an upload is proven.
func digest() error {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // It is only read.
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return err
	}
	_, err = fmt.Println(hex.EncodeToString(hash.Sum(nil)))
	return err
}

// stdio is standard input and output as one stream.
type stdio struct{ in, out *os.File }

// Read implements io.Reader.
func (s stdio) Read(p []byte) (int, error) { return s.in.Read(p) }

// Write implements io.Writer.
func (s stdio) Write(p []byte) (int, error) { return s.out.Write(p) }

// Close implements io.Closer.
func (s stdio) Close() error { return errors.Join(s.in.Close(), s.out.Close()) }
