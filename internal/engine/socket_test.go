package engine

import (
	"strings"
	"testing"
)

func TestCheckSocket(t *testing.T) {
	for name, test := range map[string]struct{ socket, wrong string }{
		"default":        {DefaultSocket, ""},
		"rootless":       {"/run/user/1000/docker.sock", ""},
		"longest":        {"/" + strings.Repeat("x", 106), ""},
		"too long":       {"/" + strings.Repeat("x", 107), "has 108 bytes"},
		"of DOCKER_HOST": {"unix:///run/user/1000/docker.sock", `write "/run/user/1000/docker.sock"`},
		"over TCP":       {"tcp://10.1.230.180:2375", "is not a socket"},
		"of a home":      {"~/docker.sock", "is not expanded"},
		"with variable":  {"$XDG_RUNTIME_DIR/docker.sock", "id -u says the number"},
		"relative":       {"run/docker.sock", "is not an absolute path"},
		"zero byte":      {"/run/\x00", "zero byte"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckSocket(test.socket)
			if test.wrong == "" && err != nil || test.wrong != "" && (kindOf(err) != BadSocket || !strings.Contains(err.Error(), test.wrong)) {
				t.Errorf("got %v", err)
			}
			_, err = New("spark-a", nil, test.socket)
			if (err == nil) != (test.wrong == "") || err != nil && !strings.HasPrefix(err.Error(), "spark-a: ") {
				t.Errorf("New: %v", err)
			}
		})
	}
}
