package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUsualFolders(t *testing.T) {
	for name, test := range map[string]struct {
		environment map[string]string
		want        []string
	}{
		"all":      {map[string]string{"XDG_CACHE_HOME": "/c", "HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/7"}, []string{"/c/spark-stack", "/home/a/.cache/spark-stack", "/run/user/7/spark-stack"}},
		"relative": {map[string]string{"XDG_CACHE_HOME": "c", "HOME": "."}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := append(test.want, "/var/tmp/spark-stack-7", "/dev/shm/spark-stack-7")
			if diff := cmp.Diff(want, usualFolders(func(name string) string { return test.environment[name] }, 7)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestClear: only what we made goes; a folder that the user chose stays.
func TestClear(t *testing.T) {
	for name, gone := range map[string]bool{"spark-stack": true, "spark-stack-1000": true, "agents": false} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), name)
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"spark-agent-0123456789ab", ".upload-0123456789ab"} {
				if err := os.WriteFile(filepath.Join(folder, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := new(server).clear(folder); err != nil {
				t.Error(err)
			}
			entries, err := os.ReadDir(folder)
			if os.IsNotExist(err) != gone || len(entries) != 0 {
				t.Errorf("left are %v, %v", entries, err)
			}
		})
	}
}
