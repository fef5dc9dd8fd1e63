// Command spark-agent is the helper that runs on a node while a provider is connected to it. It is
// uploaded and started by the provider, speaks on its standard input and output, and ends with them.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/server"
)

const usage = `usage: spark-agent serve | version | --sha256

serve     answer a provider on standard input and output
version   print the protocol and the platform
--sha256  print the digest of this program`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "spark-agent:", err)
		os.Exit(1)
	}
}

// run does one command. SIGHUP and SIGPIPE keep their meaning, which is the end: unfinished copies
// stay for the next try, and nothing else is ever left on the node.
func run(command string) error {
	switch command {
	case "serve":
		return server.Serve(context.Background(), stdio{os.Stdin, os.Stdout}, server.Options{Log: os.Stderr})
	case "version":
		_, err := fmt.Printf("spark-agent protocol %d %s/%s %s\n", agent.ProtocolVersion, runtime.GOOS, runtime.GOARCH, runtime.Version())
		return err
	case "--sha256":
		return digest()
	}
	return errors.New(usage)
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
