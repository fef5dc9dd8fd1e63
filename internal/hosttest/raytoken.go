package hosttest

import "strings"

// rayToken is Ray's token as a container has it: the variable, or the file that another one names in
// a mounted folder.
func (c *instance) rayToken() string {
	if token := c.env("RAY_AUTH_TOKEN"); token != "" {
		return token
	}
	// A file that is not there is no token, as in Ray before its start fails.
	content, _ := c.mountedFile(c.env("RAY_AUTH_TOKEN_PATH"))
	return strings.TrimSpace(string(content))
}
