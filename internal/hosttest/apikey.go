package hosttest

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// keyFile is where a server that was started by a program of its own reads its API key.
const keyFile = "/run/spark-stack/vllm/api_key"

// apiKey is a server's API key: the file, if a Python program before `vllm serve` reads it, or what the
// environment says. found is false for a file that is not there, which the program does not survive.
func (c *instance) apiKey() (key string, found bool) {
	words := c.command()
	if at := slices.Index(words, "python3"); at < 0 || at+2 >= len(words) || !strings.Contains(words[at+2], keyFile) {
		return c.env("VLLM_API_KEY"), true
	}
	content, err := c.mountedFile(keyFile)
	return strings.TrimSpace(string(content)), err == nil && len(content) > 0
}

// mountedFile is the content of a file in a folder that is mounted into the container.
func (c *instance) mountedFile(file string) ([]byte, error) {
	for _, m := range c.runtime.Mounts {
		if m.Target == path.Dir(file) {
			return os.ReadFile(c.host.Path(path.Join(m.Source, path.Base(file))))
		}
	}
	return nil, fs.ErrNotExist
}
