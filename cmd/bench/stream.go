package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The bench runs itself on the nodes, as the two ends of a plain copy.
const (
	sendCommand    = "stream-send"
	receiveCommand = "stream-receive"
)

// sendProgram puts this program on both nodes.
func (b *bench) sendProgram(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i := range b.nodes {
		program, err := os.Open(self)
		if err != nil {
			return err
		}
		command := exec.CommandContext(ctx, "ssh", "-F", b.sshConfig(), b.lab.Nodes[i].Name, //nolint:gosec // our own arguments
			fmt.Sprintf("mkdir -p %s && cat >%[2]s && chmod 700 %[2]s", b.home, b.remoteProgram()))
		command.Stdin = program
		output, err := command.CombinedOutput()
		if err = errors.Join(err, program.Close()); err != nil {
			return fmt.Errorf("copy the bench to %s: %w: %s", b.lab.Nodes[i].Name, err, output)
		}
	}
	return nil
}

// rawCopy copies the files by this program on both nodes, and returns the seconds that the sender took.
func (b *bench) rawCopy(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	receiver := exec.CommandContext(ctx, "ssh", "-F", b.sshConfig(), b.lab.Nodes[1].Name, //nolint:gosec // our own arguments
		b.remoteProgram()+" "+receiveCommand+" "+copyFolder+"/model "+b.lab.Nodes[1].Fabric)
	output, err := receiver.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := receiver.Start(); err != nil {
		return 0, err
	}
	var target string
	if _, err := fmt.Fscanln(output, &target); err != nil {
		return 0, errors.Join(fmt.Errorf("the receiver named no address: %w", err), receiver.Wait())
	}
	said, err := b.ssh(ctx, 0, b.remoteProgram()+" "+sendCommand+" "+copyFolder+"/model "+target)
	if err = errors.Join(err, receiver.Wait()); err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(said), 64)
}

// stream is the program on a node: `stream-receive FOLDER ADDRESS` prints where it listens and takes
// copyFiles files; `stream-send FOLDER TARGET` sends the folder's and prints the seconds.
func stream(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	err := errors.New("takes a folder and an address")
	if len(arguments) == 3 && arguments[0] == sendCommand {
		var took float64
		took, err = timed(func(ctx context.Context) error { return sendAll(ctx, arguments[1], arguments[2]) })(ctx)
		fmt.Fprintln(stdout, took)
	} else if len(arguments) == 3 {
		err = receiveAll(ctx, arguments[1], arguments[2], stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", arguments[0], err)
		return 1
	}
	return 0
}

// sendAll sends every file on a connection of its own, all at once, and returns when all have arrived.
func sendAll(ctx context.Context, folder, target string) error {
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return err
	}
	return all(len(names), func(i int) error {
		file, err := os.Open(names[i])
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // it was only read
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", target)
		if err != nil {
			return err
		}
		defer conn.Close()                             //nolint:errcheck // the receiver's last byte is what counts
		if _, err := io.Copy(conn, file); err != nil { // sendfile
			return err
		}
		half, ok := conn.(*net.TCPConn)
		if !ok {
			return errors.New("no TCP connection")
		}
		if err := half.CloseWrite(); err != nil {
			return err
		}
		_, err = io.ReadFull(conn, make([]byte, 1)) // it is written
		return err
	})
}

// receiveAll takes copyFiles connections into files.
func receiveAll(ctx context.Context, folder, address string, stdout io.Writer) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the program ends
	fmt.Fprintln(stdout, listener.Addr())
	// Nobody may come: then this ends by itself.
	defer time.AfterFunc(time.Minute, func() { _ = listener.Close() }).Stop()
	return all(copyFiles, func(i int) error {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // the sender has its answer
		file, err := os.Create(filepath.Join(folder, strconv.Itoa(i)+".bin"))
		if err != nil {
			return err
		}
		_, err = io.Copy(file, conn) // splice
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		_, err = conn.Write([]byte{1})
		return err
	})
}

// all runs an act for each number at once and joins what failed.
func all(count int, act func(int) error) error {
	failures := make(chan error, count)
	for i := range count {
		go func() { failures <- act(i) }()
	}
	var joined error
	for range count {
		joined = errors.Join(joined, <-failures)
	}
	return joined
}
