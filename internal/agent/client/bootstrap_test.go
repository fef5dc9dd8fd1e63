package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/embedded"
)

func reader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }

// program is the agent, built once for all tests.
var program = sync.OnceValues(func() (embedded.Program, error) {
	folder, err := os.MkdirTemp("", "spark-agent-test-")
	if err != nil {
		return embedded.Program{}, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // A left-over temporary folder harms nothing.
	binary := filepath.Join(folder, "spark-agent")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", binary, "../../../cmd/spark-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return embedded.Program{}, fmt.Errorf("%w: %s", err, output)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return embedded.Program{}, err
	}
	packed, err := embedded.Pack(content)
	if err != nil {
		return embedded.Program{}, err
	}
	return embedded.Open(packed)
})

// carries finds the program for one architecture.
func carries(architecture string, program embedded.Program) finder {
	return func(asked string) (embedded.Program, error) {
		if asked != architecture {
			return embedded.Linux("none")
		}
		return program, nil
	}
}

// node is a login on this machine, with a home of its own and start files that babble.
type node struct {
	t     *testing.T
	shell string
	home  string
	path  string
	// commands counts what was started.
	commands int
}

// Start implements Starter as sshd does: the login shell gets the command by -c.
func (n *node) Start(ctx context.Context, command string) (*Process, error) {
	n.commands++
	shell := exec.CommandContext(ctx, n.shell, "-c", command)
	shell.Env = []string{"HOME=" + n.home, "PATH=" + n.path + os.Getenv("PATH")}
	stdin, err := shell.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Wait must not close the output: as over SSH, what is still in it can be read afterwards.
	stdout, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	shell.Stdout = write
	n.t.Cleanup(func() { _ = stdout.Close() })
	stderr := &bytes.Buffer{}
	shell.Stderr = stderr
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := errors.Join(shell.Start(), write.Close()); err != nil {
		return nil, err
	}
	n.t.Cleanup(func() { _ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }) // It is gone but for a failure's children.
	noisy := io.MultiReader(strings.NewReader("Welcome to DGX OS\nno newline at the end"), stdout)
	ended := make(chan struct{})
	return &Process{
		Stdin: stdin, Stdout: noisy,
		Stderr: func() string {
			select {
			case <-ended:
				return stderr.String()
			default:
				return ""
			}
		},
		Wait: func() (int, error) {
			defer close(ended)
			state, err := shell.Process.Wait()
			if err != nil {
				return -1, err
			}
			_ = shell.Wait() // It reads standard error to its end; the process is gone already.
			return state.ExitCode(), nil
		},
		Close: func() error {
			if err := shell.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return err
			}
			return nil
		},
	}, nil
}

func newNode(t *testing.T, shell string) *node {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("%s is not installed here", shell)
	}
	return &node{t: t, shell: path, home: t.TempDir()}
}

func TestBootstrap(t *testing.T) {
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"sh", "bash", "dash", "zsh", "tcsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			n := newNode(t, shell)
			folder := filepath.Join(n.home, ".cache/spark-stack")
			if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // The upload shall close it.
				t.Fatal(err)
			}
			old := filepath.Join(folder, "spark-agent-0123456789ab")
			if err := os.WriteFile(old, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, commands := range []int{3, 4} { // A node that has the agent costs one command.
				helper, err := start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), Options{})
				if err != nil {
					t.Fatal(err)
				}
				facts, err := helper.Facts(t.Context())
				if err != nil || facts.Memory.Total == 0 {
					t.Errorf("facts: %+v, %v", facts, err)
				}
				if err := helper.Close(); err != nil {
					t.Error(err)
				}
				if n.commands != commands {
					t.Errorf("%d commands, want %d", n.commands, commands)
				}
			}
			checkInstalled(t, folder, built.SHA256)
		})
	}
}

// checkInstalled wants the one program, for its owner alone.
func checkInstalled(t *testing.T, folder, digest string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 || entries[0].Name() != "spark-agent-"+digest[:12] {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info, err)
	}
}

func TestUninstallOfTheRealProgram(t *testing.T) {
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, "sh")
	helper, err := start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Uninstall(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := helper.Facts(t.Context()); err != nil {
		t.Errorf("the running agent ended with its file: %v", err)
	}
	if err := helper.Close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(filepath.Join(n.home, ".cache")); err != nil || len(entries) != 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

func TestBootstrapFailures(t *testing.T) {
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	// tool puts a script before the node's programs.
	tool := func(t *testing.T, n *node, name, script string) {
		t.Helper()
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // It is run.
			t.Fatal(err)
		}
		n.path = folder + ":"
	}
	tests := map[string]struct {
		prepare func(t *testing.T, n *node)
		find    finder
		want    string
	}{
		"other processor": {
			prepare: func(t *testing.T, n *node) { tool(t, n, "uname", `case $1 in -m) echo riscv64;; *) echo Linux;; esac`) },
			want:    "the node runs Linux on riscv64; the agent runs on Linux, on aarch64 (as a DGX Spark) or x86_64",
		},
		"other system": {
			prepare: func(t *testing.T, n *node) { tool(t, n, "uname", `case $1 in -m) echo arm64;; *) echo Darwin;; esac`) },
			want:    "the node runs Darwin on arm64",
		},
		"not in this build": {
			find: func(string) (embedded.Program, error) { return embedded.Linux("none") },
			want: "this build carries no agent for linux/none: build it with `make build`",
		},
		"home is a file": {
			prepare: func(t *testing.T, n *node) {
				n.home = filepath.Join(n.home, "file")
				if err := os.WriteFile(n.home, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			want: "file/.cache/spark-stack cannot be made or written",
		},
		"cut on the way": {
			prepare: func(t *testing.T, n *node) { tool(t, n, "cat", "exec head -c 1000") },
			want:    "did not arrive whole",
		},
		"no execution": {
			prepare: func(t *testing.T, n *node) {
				tool(t, n, "chmod", `case $2 in */.upload-*) exec /bin/chmod 600 $2;; esac; exec /bin/chmod $*`)
			},
			want: "its file system is mounted noexec",
		},
		"something cleans": {
			prepare: func(t *testing.T, n *node) { tool(t, n, "mv", `rm "$2"`) },
			want:    "was uploaded, and is not there now",
		},
		"no login": {
			prepare: func(t *testing.T, n *node) {
				n.shell = filepath.Join(t.TempDir(), "nologin")
				if err := os.WriteFile(n.shell, []byte("#!/bin/sh\necho This account is not available.\nexit 1\n"), 0o700); err != nil { //nolint:gosec // It is run.
					t.Fatal(err)
				}
			},
			want: "no answer from the agent (exit code 1); the node said: no newline at the endThis account is not available.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "sh")
			if test.prepare != nil {
				test.prepare(t, n)
			}
			if test.find == nil {
				test.find = carries(runtime.GOARCH, built)
			}
			_, err := start(t.Context(), "spark-a", n, test.find, Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(n.home, ".cache/spark-stack/*"))
			hidden, _ := filepath.Glob(filepath.Join(n.home, ".cache/spark-stack/.u*"))
			if left = slices.Concat(left, hidden); len(left) != 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

func TestStartIsAnAgentError(t *testing.T) {
	starter := StarterFunc(func(context.Context, string) (*Process, error) { return nil, errors.New("no session") })
	_, err := Start(t.Context(), "spark-a", starter, Options{})
	var failed *agent.Error
	if !errors.As(err, &failed) || err.Error() != "spark-a: start the agent: no session" {
		t.Errorf("got %v", err)
	}
}

func TestStartObeysItsContext(t *testing.T) {
	n := newNode(t, "sh")
	n.path = t.TempDir() + ":"
	if err := os.WriteFile(filepath.Join(strings.TrimSuffix(n.path, ":"), "uname"), []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil { //nolint:gosec // It is run.
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the user gave up")
	time.AfterFunc(200*time.Millisecond, func() { cancel(reason) })
	begun := time.Now()
	if _, err := start(ctx, "spark-a", n, embedded.Linux, Options{}); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestScriptsSuitEveryShell(t *testing.T) {
	for _, script := range []string{startScript(map[string]string{"arm64": strings.Repeat("ab", 32)}), uploadScript(strings.Repeat("ab", 32))} {
		inner := strings.TrimSuffix(strings.TrimPrefix(script, "sh -c '"), "'")
		if strings.ContainsAny(inner, "'\\!\n") {
			t.Errorf("a character that shells treat differently: %s", inner)
		}
	}
}

func TestNothingOutlivesTheSession(t *testing.T) {
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, "sh")
	tools := t.TempDir()
	n.path = tools + ":"
	script := "#!/bin/sh\necho $$ > \"$HOME/pid\"\nexec sleep 60\n"
	if err := os.WriteFile(filepath.Join(tools, "nvidia-smi"), []byte(script), 0o700); err != nil { //nolint:gosec // It is run.
		t.Fatal(err)
	}
	helper, err := start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), Options{})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := helper.Facts(t.Context())
		failed <- err
	}()
	pid := eventually(t, func() string {
		text, _ := os.ReadFile(filepath.Join(n.home, "pid")) // It is not there yet.
		return strings.TrimSpace(string(text))
	})
	if err := helper.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the call did not fail")
	}
	eventually(t, func() string {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return "gone"
		}
		return ""
	})
}

// eventually asks until there is an answer.
func eventually(t *testing.T, ask func() string) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if answer := ask(); answer != "" {
			return answer
		}
	}
	t.Fatal("not within 10 s")
	return ""
}
