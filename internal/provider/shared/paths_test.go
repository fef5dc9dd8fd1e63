package shared

import (
	"strings"
	"testing"
)

// What the layers below would refuse is refused in the configuration, in their words.
func TestPathsOnTheNode(t *testing.T) {
	for name, test := range map[string]struct{ setting, word, problem string }{
		"socket":                {"docker_socket", "/run/user/1000/docker.sock", ""},
		"address of a socket":   {"docker_socket", "unix:///run/docker.sock", `write "/run/docker.sock".`},
		"socket not expanded":   {"docker_socket", "$XDG_RUNTIME_DIR/docker.sock", "is not expanded"},
		"folder":                {"agent_dir", "/opt/spark", ""},
		"folder below the home": {"agent_dir", "~/spark", ""},
		"relative folder":       {"agent_dir", "spark", "is neither absolute nor below ~/."},
		"folder with a quote":   {"agent_dir", "/opt/o'brien", "cannot be named to every shell."},
	} {
		t.Run(name, func(t *testing.T) {
			for _, setting := range Settings() {
				if setting.Name != test.setting {
					continue
				}
				if got := setting.Problem(test.word); (got == "") != (test.problem == "") || !strings.Contains(got, test.problem) {
					t.Errorf("got %q", got)
				}
				return
			}
			t.Errorf("there is no %s", test.setting)
		})
	}
}

// A private key in a wrong place is neither stored nor repeated.
func TestKeyInAWrongPlace(t *testing.T) {
	const key = "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----\n"
	for _, setting := range Settings() {
		got := setting.Problem(key)
		if setting.Secret != (got == "") || strings.Contains(got, "hunter2") || !setting.Secret && !strings.Contains(got, "private key") {
			t.Errorf("%s: %q", setting.Name, got)
		}
	}
}
