package agentfile_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/embedded"
	"github.com/spark-stack/terraform-provider-spark/internal/command/agentfile"
)

func TestWritesTheProgram(t *testing.T) {
	for _, test := range []struct {
		args    []string
		machine elf.Machine
	}{
		{nil, elf.EM_AARCH64},
		{[]string{"linux/arm64"}, elf.EM_AARCH64},
		{[]string{"linux/amd64"}, elf.EM_X86_64},
	} {
		var out, errOut bytes.Buffer
		code := agentfile.Run(test.args, &out, &errOut)
		if _, err := embedded.Linux("arm64"); errors.Is(err, embedded.ErrMissing) {
			if code != 1 || errOut.Len() == 0 {
				t.Errorf("a build without agents: code %d, %q", code, errOut.String())
			}
			continue
		}
		program, err := elf.NewFile(bytes.NewReader(out.Bytes()))
		if code != 0 || err != nil || program.Machine != test.machine {
			t.Errorf("%v: code %d, %v, %s", test.args, code, err, errOut.String())
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, args := range [][]string{{"darwin/arm64"}, {"arm64"}, {"linux/riscv64"}, {"-h"}, {"linux/arm64", "more"}} {
		var out, errOut bytes.Buffer
		if code := agentfile.Run(args, &out, &errOut); code != 1 || out.Len() != 0 || !strings.Contains(errOut.String(), "agent") {
			t.Errorf("%v: code %d, %d bytes, %q", args, code, out.Len(), errOut.String())
		}
	}
}
