package sshx

import (
	"fmt"
	"io"
	"os"
)

// maxFile bounds, in bytes, a key, a certificate or a configuration; the largest key has some kilobytes.
const maxFile = 1 << 20

// readFile reads a regular file whole, or nothing from the null device. A pipe would be waited for, and
// other devices have no end.
func readFile(path string, most int64) ([]byte, error) {
	if path == os.DevNull {
		return nil, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > most:
		return nil, fmt.Errorf("%s has %d bytes, over the limit of %d", path, info.Size(), most)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // It is only read.
	return io.ReadAll(io.LimitReader(file, most))
}
