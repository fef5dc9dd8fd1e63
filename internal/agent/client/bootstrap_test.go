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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
	// environment comes on top of HOME and PATH.
	environment []string
	// shared are the places of everyone's, in order.
	shared []string
	// silence is how long the first try waits; 0 is the usual time.
	silence time.Duration
	// commands counts what was started.
	commands int
}

func (n *node) options() Options { return Options{shared: n.shared, silence: n.silence} }

// Start implements Starter as sshd does: the login shell gets the command by -c.
func (n *node) Start(ctx context.Context, command string) (*Process, error) {
	n.commands++
	shell := exec.CommandContext(ctx, n.shell, "-c", command)
	shell.Env = append([]string{"HOME=" + n.home, "PATH=" + n.path + os.Getenv("PATH")}, n.environment...)
	shell.Dir = n.t.TempDir() // Whatever a broken script writes shall not land in the sources.
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
	return &node{t: t, shell: path, home: t.TempDir(), shared: []string{}}
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
			recent := filepath.Join(folder, "spark-agent-ba9876543210")
			abandoned := filepath.Join(folder, ".upload-77")
			for _, file := range []string{old, recent, abandoned} {
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			yesterday := time.Now().Add(-25 * time.Hour)
			for _, file := range []string{old, abandoned} {
				if err := os.Chtimes(file, yesterday, yesterday); err != nil {
					t.Fatal(err)
				}
			}
			for _, commands := range []int{3, 4} { // A node that has the agent costs one command.
				helper, err := start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), n.options())
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
			if err := os.Remove(recent); err != nil {
				t.Errorf("the program of another provider: %v", err)
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
	helper, err := start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), n.options())
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
	if _, err := start(ctx, "spark-a", n, embedded.Linux, n.options()); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestScriptsSuitEveryShell(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	for _, f := range []folders{{shared: sharedFolders}, {given: "/opt/a folder"}, {given: "~/agents"}} {
		for _, w := range []way{{shell: "sh"}, {shell: "/bin/sh", careful: true}} {
			for _, script := range []string{startScript(w, f, map[string]string{"arm64": digest}), uploadScript(f, digest, "cafe", 7, 0)} {
				if strings.ContainsAny(script, "'\\!\n") {
					t.Errorf("a character that shells treat differently: %s", script)
				}
			}
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
	helper, err := start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), n.options())
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
