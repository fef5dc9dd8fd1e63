package client

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// install starts the agent on a node, wants it to answer, and gives the only program in the folder.
func (n *node) install(folder string) string {
	n.t.Helper()
	built, err := program()
	if err != nil {
		n.t.Fatal(err)
	}
	helper, err := start(n.t.Context(), "spark-a", n, carries(runtime.GOARCH, built), n.options())
	if err != nil {
		n.t.Fatal(err)
	}
	if facts, err := helper.Facts(n.t.Context()); err != nil || facts.Memory.Total == 0 {
		n.t.Errorf("facts: %+v, %v", facts, err)
	}
	if err := helper.Close(); err != nil {
		n.t.Error(err)
	}
	installed := filepath.Join(folder, "spark-agent-"+built.SHA256[:12])
	info, err := os.Stat(installed)
	if err != nil || info.Mode().Perm() != 0o700 {
		n.t.Errorf("%v, %v", info, err)
	}
	return installed
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// noexec lets no program run below a folder.
func (n *node) noexec(folder string) {
	n.tool("chmod", `case $2 in `+folder+`/*.upload-*) exec /bin/chmod 600 "$2";; esac; exec /bin/chmod "$@"`)
}

func TestFallbackFolders(t *testing.T) {
	own := "spark-stack-" + strconv.Itoa(os.Getuid())
	tests := map[string]struct {
		prepare func(n *node) (folder string)
	}{
		"XDG_CACHE_HOME": {func(n *node) string {
			cache := n.t.TempDir()
			n.environment = []string{"XDG_CACHE_HOME=" + cache}
			return filepath.Join(cache, "spark-stack")
		}},
		"relative XDG_CACHE_HOME": {func(n *node) string {
			n.environment = []string{"XDG_CACHE_HOME=cache"}
			return filepath.Join(n.home, ".cache/spark-stack")
		}},
		"XDG_CACHE_HOME that cannot be": {func(n *node) string {
			n.environment = []string{"XDG_CACHE_HOME=/dev/null/cache"}
			return filepath.Join(n.home, ".cache/spark-stack")
		}},
		"a home with a space": {func(n *node) string {
			n.home = filepath.Join(n.home, "a home")
			return filepath.Join(n.home, ".cache/spark-stack")
		}},
		"no home, but XDG_RUNTIME_DIR": {func(n *node) string {
			n.home = ""
			runtime := n.t.TempDir()
			n.environment = []string{"XDG_RUNTIME_DIR=" + runtime}
			return filepath.Join(runtime, "spark-stack")
		}},
		"relative home": {func(n *node) string {
			n.home, n.shared = "here", []string{n.t.TempDir()}
			return filepath.Join(n.shared[0], own)
		}},
		"home without execution": {func(n *node) string {
			n.noexec(n.home)
			n.shared = []string{n.t.TempDir()}
			return filepath.Join(n.shared[0], own)
		}},
		"full home": {func(n *node) string {
			n.tool("cat", `case $PWD in `+n.home+`/*) head -c 1000; echo No space left on device >&2; exit 1;; esac; exec /bin/cat`)
			n.shared = []string{n.t.TempDir()}
			return filepath.Join(n.shared[0], own)
		}},
		"somebody's link in the first place": {func(n *node) string {
			n.home, n.shared = "", []string{n.t.TempDir(), n.t.TempDir()}
			must(n.t, os.Symlink(n.t.TempDir(), filepath.Join(n.shared[0], own)))
			return filepath.Join(n.shared[1], own)
		}},
		"a folder open to others in the first place": {func(n *node) string {
			n.home, n.shared = "", []string{n.t.TempDir(), n.t.TempDir()}
			planted := filepath.Join(n.shared[0], own)
			must(n.t, os.Mkdir(planted, 0o700), os.Chmod(planted, 0o770)) //nolint:gosec // It shall be refused.
			return filepath.Join(n.shared[1], own)
		}},
		"no such place": {func(n *node) string {
			n.home, n.shared = "", []string{"/nonexistent", n.t.TempDir()}
			return filepath.Join(n.shared[1], own)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "sh")
			folder := test.prepare(n)
			n.install(folder)
			commands := n.commands
			n.install(folder)
			if n.commands != commands+1 {
				t.Errorf("the second start took %d commands", n.commands-commands)
			}
			for _, place := range n.shared {
				if entries, _ := filepath.Glob(filepath.Join(place, "*/.upload-*")); len(entries) != 0 {
					t.Errorf("left are %v", entries)
				}
			}
		})
	}
}

// TestPlantedProgram: in a place of everyone's, another user's program of the right name is not run.
func TestPlantedProgram(t *testing.T) {
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, "sh")
	n.home, n.shared = "", []string{t.TempDir()}
	elsewhere := t.TempDir()
	planted := filepath.Join(elsewhere, "spark-agent-"+built.SHA256[:12])
	must(t, os.WriteFile(planted, []byte("touch "+elsewhere+"/run\n"), 0o755), //nolint:gosec // It must be runnable.
		os.Symlink(elsewhere, filepath.Join(n.shared[0], "spark-stack-"+strconv.Itoa(os.Getuid()))))
	_, err = start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), n.options())
	var failed *StartError
	if !errors.As(err, &failed) || failed.Kind != StartNoFolder || !strings.Contains(err.Error(), "not a folder of this user alone") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(elsewhere + "/run"); err == nil {
		t.Error("the planted program was run")
	}
}

func TestGivenFolder(t *testing.T) {
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		// prepare gives agent_dir and where the program is then, or what is wrong.
		prepare func(n *node) (given, folder string)
		kind    StartKind
		want    string
	}{
		"absolute":   {prepare: func(n *node) (string, string) { f := filepath.Join(n.t.TempDir(), "a b/c"); return f, f }},
		"below home": {prepare: func(n *node) (string, string) { return "~/agents", filepath.Join(n.home, "agents") }},
		"never fallen away from": {
			prepare: func(n *node) (string, string) { n.shared = []string{n.t.TempDir()}; return "/dev/null/x", "" },
			kind:    StartFolder, want: "agent_dir cannot be used: /dev/null/x (mkdir: ",
		},
		"without execution": {
			prepare: func(n *node) (string, string) {
				folder := n.t.TempDir()
				n.noexec(folder)
				return folder, ""
			},
			kind: StartFolder, want: "programs there may not be run: Permission denied",
		},
		"open to everybody": {
			prepare: func(n *node) (string, string) {
				folder := n.t.TempDir()
				must(n.t, os.Chmod(folder, 0o777)) //nolint:gosec // It shall be refused.
				return folder, ""
			},
			kind: StartFolder, want: "it belongs to somebody else or everybody may write to it",
		},
		"a link to a folder open to everybody": {
			prepare: func(n *node) (string, string) {
				folder, link := n.t.TempDir(), filepath.Join(n.t.TempDir(), "link")
				must(n.t, os.Chmod(folder, 0o777), os.Symlink(folder, link)) //nolint:gosec // It shall be refused.
				return link, ""
			},
			kind: StartFolder, want: "everybody may write to it",
		},
		"a link": {prepare: func(n *node) (string, string) {
			folder, link := n.t.TempDir(), filepath.Join(n.t.TempDir(), "link")
			must(n.t, os.Symlink(folder, link))
			return link, folder
		}},
		"as /tmp is, where nobody replaces another's file": {prepare: func(n *node) (string, string) {
			folder := n.t.TempDir()
			must(n.t, os.Chmod(folder, 0o777|os.ModeSticky))
			return folder, folder
		}},
		"below no home": {
			prepare: func(n *node) (string, string) { n.home = ""; return "~/agents", "" },
			kind:    StartFolder, want: "HOME of the login is not set",
		},
		"relative":        {prepare: func(*node) (string, string) { return "agents", "" }, kind: StartBadFolder, want: `"agents" is neither absolute nor below ~/`},
		"with a variable": {prepare: func(*node) (string, string) { return "/tmp/$USER", "" }, kind: StartBadFolder, want: "cannot be named"},
		"with a quote":    {prepare: func(*node) (string, string) { return "/tmp/'; id; '", "" }, kind: StartBadFolder, want: "cannot be named"},
		"two lines":       {prepare: func(*node) (string, string) { return "/tmp/\nid", "" }, kind: StartBadFolder, want: "cannot be named"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "sh")
			given, folder := test.prepare(n)
			options := n.options()
			options.Folder = given
			helper, err := start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), options)
			if test.want != "" {
				var failed *StartError
				if !errors.As(err, &failed) || failed.Kind != test.kind || !strings.Contains(err.Error(), test.want) || failed.Advice() == "" {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			must(t, helper.Close())
			if _, err := os.Stat(filepath.Join(folder, "spark-agent-"+built.SHA256[:12])); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAGivenFolderStaysAsItIs: it is the user's, who may share it.
func TestAGivenFolderStaysAsItIs(t *testing.T) {
	built, err := program()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, "sh")
	folder := t.TempDir()
	deep := filepath.Join(folder, "projects/spark-agent-notes")
	must(t, os.Chmod(folder, 0o755), os.MkdirAll(filepath.Dir(deep), 0o700), os.WriteFile(deep, nil, 0o600)) //nolint:gosec // As /opt has it.
	old := time.Now().Add(-48 * time.Hour)
	must(t, os.Chtimes(deep, old, old))
	options := n.options()
	options.Folder = folder
	helper, err := start(t.Context(), "spark-a", n, carries(runtime.GOARCH, built), options)
	if err != nil {
		t.Fatal(err)
	}
	must(t, helper.Close())
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(deep); err != nil {
		t.Error("a file below it was removed")
	}
}
