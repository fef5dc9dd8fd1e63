//go:build lab

package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/client"
	"github.com/spark-stack/terraform-provider-spark/internal/sshtest"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

// login is an account of a real sshd on this machine.
type login struct {
	server *sshtest.Server
	key    sshtest.Key
	name   string
	home   string
	uid    int
}

// newLogin starts a server, with lines for its configuration, and makes an account. Root only.
func newLogin(t *testing.T, options sshtest.UserOptions, config ...string) login {
	t.Helper()
	key := sshtest.NewKey(t, sshtest.KeyOptions{})
	l := login{server: sshtest.Start(t, sshtest.Options{AuthorizedKeys: []string{key.Public}, Config: config}), key: key}
	files := options.Files
	options.Files = nil
	l.name, l.home = sshtest.NewUser(t, options)
	for name, content := range files { // some below folders
		file := filepath.Join(l.home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil { //nolint:gosec // The account reads it.
			t.Fatal(err)
		}
	}
	number, err := exec.CommandContext(t.Context(), "id", "-u", l.name).Output()
	if err == nil {
		l.uid, err = strconv.Atoi(strings.TrimSpace(string(number)))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // What a failed test may leave, and before the account goes.
		for _, folder := range []string{"/var/tmp", "/dev/shm"} {
			_ = os.RemoveAll(filepath.Join(folder, "spark-stack-"+strconv.Itoa(l.uid)))
		}
	})
	return l
}

// dial logs in; port is the server's, or that of a relay before it.
func (l login) dial(t *testing.T, port int) sshx.Client {
	t.Helper()
	connected, err := sshx.Dial(t.Context(), l.config(port))
	if err != nil {
		t.Fatalf("%v\n%s", err, l.server.Log())
	}
	t.Cleanup(func() { _ = connected.Close() })
	return connected
}

func (l login) config(port int) sshx.Config {
	return sshx.Config{
		Host: l.server.Host, Port: port, User: l.name, PrivateKeyFile: l.key.File, HostKey: l.server.HostKeys[0].Fingerprint,
	}
}

func starter(ssh sshx.Client) client.Starter {
	return client.StarterFunc(func(ctx context.Context, command string) (*client.Process, error) {
		process, err := ssh.Start(ctx, command)
		return (*client.Process)(process), err
	})
}

// start starts the agent, and wants it to see that it runs as the account.
func (l login) start(t *testing.T, ssh sshx.Client, options client.Options) agent.Agent {
	t.Helper()
	helper, err := client.Start(t.Context(), l.server.Host, starter(ssh), options)
	if err != nil {
		t.Fatalf("%v\n%s", err, advice(err))
	}
	t.Cleanup(func() { _ = helper.Close() })
	facts, err := helper.Facts(t.Context())
	if err != nil || facts.User.Name != l.name || facts.Memory.Total == 0 {
		t.Fatalf("user %q, %d bytes: %v", facts.User.Name, facts.Memory.Total, err)
	}
	return helper
}

func advice(err error) string {
	var known interface{ Advice() string }
	if errors.As(err, &known) {
		return known.Advice()
	}
	return ""
}

// processes are those of the account that are not sshd's own, as "name pid".
func (l login) processes(t *testing.T, withSSHD bool) map[string]int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		info, statErr := os.Stat("/proc/" + entry.Name())
		if err != nil || statErr != nil {
			continue // Not a process, or gone.
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		name, err := os.ReadFile("/proc/" + entry.Name() + "/comm")
		if ok && err == nil && int(stat.Uid) == l.uid && (withSSHD || !strings.HasPrefix(string(name), "sshd")) {
			found[fmt.Sprintf("%s %d", strings.TrimSpace(string(name)), pid)] = pid
		}
	}
	return found
}

// gone waits until nothing of the account runs any more.
func (l login) gone(t *testing.T, within time.Duration) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left := l.processes(t, false)
		if len(left) == 0 {
			t.Logf("nothing is left after %s", time.Since(begun).Round(10*time.Millisecond))
			return
		}
		if time.Since(begun) > within {
			t.Fatalf("left after %s are %v", within, left)
		}
	}
}

// programs are the agent's files below a folder.
func programs(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && (strings.HasPrefix(entry.Name(), "spark-agent-") || strings.HasPrefix(entry.Name(), ".upload-")) {
			found = append(found, path)
		}
		return nil // What cannot be read holds nothing of ours.
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLabLogins(t *testing.T) {
	shells := map[string]struct {
		shell string
		files map[string]string
	}{
		"bash": {shell: "/bin/bash"},
		"dash": {shell: "/bin/dash"},
		"zsh":  {shell: "/bin/zsh"},
		"tcsh": {shell: "/bin/tcsh"},
		"fish": {shell: "/usr/bin/fish"},
		"sh":   {shell: "/bin/sh"},
		"bash that babbles": {"/bin/bash", map[string]string{
			".bashrc": "echo loading; echo oops >&2; printf 'no newline'; cd /nonexistent; false\n",
		}},
		"bash with a strict start": {"/bin/bash", map[string]string{".bashrc": "set -eu; set -o noclobber; alias cat=bat; umask 000\n"}},
		"zsh with a strict start": {"/bin/zsh", map[string]string{
			".zshenv": "setopt noclobber err_exit no_unset; alias cat=bat; alias rm='rm -i'; umask 077; print -n loading\n",
		}},
		"tcsh that babbles":               {"/bin/tcsh", map[string]string{".tcshrc": "echo loading\nalias cat bat\nset noclobber\nsetenv LC_ALL xx_YY\n"}},
		"fish that babbles":               {"/usr/bin/fish", map[string]string{".config/fish/config.fish": "echo loading; alias cat bat; set -gx LC_ALL xx_YY\n"}},
		"bash that becomes zsh":           {"/bin/bash", map[string]string{".bashrc": "exec zsh\n"}},
		"bash that becomes dash, noisily": {"/bin/bash", map[string]string{".bashrc": "echo hello; exec dash\n"}},
		"bash that becomes tcsh":          {"/bin/bash", map[string]string{".bashrc": "exec tcsh\n"}},
		"zsh that becomes bash":           {"/bin/zsh", map[string]string{".zshenv": "exec bash\n"}},
		"bash without a PATH":             {"/bin/bash", map[string]string{".bashrc": "PATH=\n"}},
		"a restricted bash":               {"/bin/rbash", map[string]string{".bashrc": "PATH=/usr/bin:/bin\n"}},
	}
	for name, test := range shells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(test.shell); err != nil {
				t.Fatal(err)
			}
			l := newLogin(t, sshtest.UserOptions{Shell: test.shell, Files: test.files})
			ssh := l.dial(t, l.server.Port)
			if err := l.start(t, ssh, client.Options{Facts: true}).Close(); err != nil {
				t.Error(err)
			}
			// A shell that took HTTP/2 for commands shall have made nothing of it.
			if made, err := filepath.Glob(filepath.Join(l.home, "[^.]*")); err != nil || len(made) != 0 {
				t.Errorf("the home has %v, %v", made, err)
			}
			found := programs(t, l.home)
			if len(found) != 1 || !strings.HasPrefix(found[0], filepath.Join(l.home, ".cache/spark-stack/spark-agent-")) {
				t.Fatalf("found %v", found)
			}
			for path, want := range map[string]os.FileMode{filepath.Dir(found[0]): 0o700, found[0]: 0o700} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s: %v, %v", path, info.Mode(), err)
				}
			}
			l.gone(t, 5*time.Second)
		})
	}
}

func TestLabLoginsThatCannot(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shell, want string
		config      []string
		files       map[string]string
		kind        client.StartKind
	}{
		"nologin":          {shell: "/usr/sbin/nologin", kind: client.StartNoAnswer, want: "This account is currently not available."},
		"a forced command": {shell: "/bin/sh", config: []string{"ForceCommand echo backup only"}, kind: client.StartNoAnswer, want: "the node said: backup only"},
		// fish takes commands from its input only when that has ended.
		"bash that becomes fish": {
			shell: "/bin/bash", files: map[string]string{".bashrc": "exec fish\n"},
			kind: client.StartSilent, want: "neither answers nor ends within 5s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLogin(t, sshtest.UserOptions{Shell: test.shell, Files: test.files}, test.config...)
			_, err := client.Start(t.Context(), l.server.Host, starter(l.dial(t, l.server.Port)), client.Options{})
			var failed *client.StartError
			if !errors.As(err, &failed) || failed.Kind != test.kind || !strings.Contains(err.Error(), test.want) || failed.Advice() == "" {
				t.Errorf("got %v", err)
			}
			l.gone(t, 5*time.Second)
		})
	}
}

// TestLabNoHome: the account has a home, its start file has not.
func TestLabNoHome(t *testing.T) {
	for _, start := range []string{"unset HOME", "HOME=here"} {
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			l := newLogin(t, sshtest.UserOptions{Shell: "/bin/bash", Files: map[string]string{".bashrc": start + "\n"}})
			_ = l.start(t, l.dial(t, l.server.Port), client.Options{})
			if found := programs(t, filepath.Join("/var/tmp", "spark-stack-"+strconv.Itoa(l.uid))); len(found) != 1 {
				t.Errorf("found %v", found)
			}
		})
	}
}

// mount puts a file system of its own over the account's home, until the test ends.
func (l login) mount(t *testing.T, options string) {
	t.Helper()
	whole := fmt.Sprintf("uid=%d,mode=755,%s", l.uid, options)
	if output, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", whole, "spark-test", l.home).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v\n%s", err, output)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(l.home, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", l.home, err)
		}
	})
}

func TestLabHomes(t *testing.T) {
	for name, test := range map[string]struct {
		options string
		reason  string // of agent_dir in that home
	}{
		"noexec":    {"noexec", "programs there may not be run: Permission denied"},
		"read-only": {"ro", "Read-only file system"},
		"full":      {"size=64k", "No space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogin(t, sshtest.UserOptions{Shell: "/bin/bash"})
			l.mount(t, test.options)
			ssh := l.dial(t, l.server.Port)
			helper := l.start(t, ssh, client.Options{})
			own := filepath.Join("/var/tmp", "spark-stack-"+strconv.Itoa(l.uid))
			if found := programs(t, own); len(found) != 1 {
				t.Errorf("%s has %v", own, found)
			}
			if found := programs(t, l.home); len(found) != 0 {
				t.Errorf("the home has %v", found)
			}
			if err := helper.Uninstall(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(own); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", own, err)
			}
			_, err := client.Start(t.Context(), l.server.Host, starter(ssh), client.Options{Folder: "~/agents"})
			var failed *client.StartError
			if !errors.As(err, &failed) || failed.Kind != client.StartFolder || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("agent_dir: %v", err)
			}
		})
	}
}

// TestLabPlanted: in /var/tmp somebody else has taken the name of our folder.
func TestLabPlanted(t *testing.T) {
	for name, plant := range map[string]func(folder string) error{
		"a folder of another user": func(folder string) error { return os.Mkdir(folder, 0o777) }, //nolint:gosec // As open as it can be.
		"a link":                   func(folder string) error { return os.Symlink("/tmp", folder) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogin(t, sshtest.UserOptions{Shell: "/bin/bash"})
			l.mount(t, "ro")
			if err := plant(filepath.Join("/var/tmp", "spark-stack-"+strconv.Itoa(l.uid))); err != nil {
				t.Fatal(err)
			}
			_ = l.start(t, l.dial(t, l.server.Port), client.Options{})
			if found := programs(t, filepath.Join("/dev/shm", "spark-stack-"+strconv.Itoa(l.uid))); len(found) != 1 {
				t.Errorf("found %v", found)
			}
		})
	}
}

// providerEnvironment makes this test program the provider of TestLabNothingStays: it holds an agent.
const providerEnvironment = "SPARK_TEST_PROVIDER_OF"

func TestLabNothingStays(t *testing.T) {
	if account := os.Getenv(providerEnvironment); account != "" {
		holdAgent(t, strings.Split(account, " "))
		return
	}
	t.Parallel()
	t.Run("the provider is killed", func(t *testing.T) {
		t.Parallel()
		l := newLogin(t, sshtest.UserOptions{Shell: "/bin/bash"})
		provider := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLabNothingStays$") //nolint:gosec // this very program
		provider.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s %s %s", providerEnvironment,
			l.server.Host, l.server.Port, l.name, l.key.File, l.server.HostKeys[0].Fingerprint))
		output, err := provider.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := provider.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, len(holding))
		if _, err := io.ReadFull(output, said); err != nil || string(said) != holding {
			t.Errorf("%q, %v", said, err)
		}
		if len(l.processes(t, false)) == 0 {
			t.Error("no agent runs")
		}
		_ = provider.Process.Kill()
		_ = provider.Wait()
		l.gone(t, 10*time.Second)
	})
	t.Run("sshd's child is killed", func(t *testing.T) {
		t.Parallel()
		l := newLogin(t, sshtest.UserOptions{Shell: "/bin/bash"})
		_ = l.start(t, l.dial(t, l.server.Port), client.Options{})
		if len(l.processes(t, false)) == 0 {
			t.Error("no agent runs")
		}
		for name, pid := range l.processes(t, true) {
			if strings.HasPrefix(name, "sshd") {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		}
		l.gone(t, 10*time.Second)
	})
	t.Run("the line is cut without a word", func(t *testing.T) {
		t.Parallel()
		l := newLogin(t, sshtest.UserOptions{Shell: "/bin/bash"})
		line := newRelay(t, l.server.Address())
		_ = l.start(t, l.dial(t, line.port), client.Options{})
		if len(l.processes(t, false)) == 0 {
			t.Error("no agent runs")
		}
		line.cut()
		l.gone(t, time.Minute) // 30 s of silence, and 15 s for the answer to its ping
	})
}

const holding = "holding\n"

// holdAgent is a provider that hangs with a running agent.
func holdAgent(t *testing.T, account []string) {
	port, err := strconv.Atoi(account[1])
	if err != nil {
		t.Fatal(err)
	}
	ssh, err := sshx.Dial(t.Context(), sshx.Config{Host: account[0], Port: port, User: account[2], PrivateKeyFile: account[3], HostKey: account[4]})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Start(t.Context(), account[0], starter(ssh), client.Options{}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(os.Stdout, holding)
	time.Sleep(time.Minute)
}
