package client

import (
	"fmt"
	"io"
)

// maxAnswer bounds an answer, in bytes: the listing of 100,000 files has about 30 MB. A node that was
// taken over, or whose agent is broken, must not fill the memory of whoever plans.
const maxAnswer = 128 << 20

// bounded is an answer's body, of which no more than some bytes are read.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
