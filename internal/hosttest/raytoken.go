package hosttest

import (
	"os"
	"path"
	"strings"
)

// rayToken is Ray's token as a container has it: the variable, or the file that another one names in
// a mounted folder.
func (c *instance) rayToken() string {
	if token := c.env("RAY_AUTH_TOKEN"); token != "" {
		return token
	}
	file := c.env("RAY_AUTH_TOKEN_PATH")
	for _, m := range c.runtime.Mounts {
		if m.Target != path.Dir(file) {
			continue
		}
		// A file that is not there is no token, as in Ray before its start fails.
		content, _ := os.ReadFile(c.host.Path(path.Join(m.Source, path.Base(file))))
		return strings.TrimSpace(string(content))
	}
	return ""
}
