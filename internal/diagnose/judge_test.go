package diagnose

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

func rows(got Report) []int {
	var numbers []int
	for _, one := range got.Causes {
		numbers = append(numbers, one.Row)
	}
	return numbers
}

func TestRanking(t *testing.T) {
	const (
		dead   = "ERROR 11-30 10:11:20 [async_llm.py:480] EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."
		oom    = "ERROR 11-30 10:11:15 [core.py:9] torch.OutOfMemoryError: CUDA out of memory."
		qp     = "11-30 10:11:14 spark-b:71:71 [0] misc/ibvwrap.cc:376 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out"
		rpc    = "ERROR 11-30 10:11:18 [core.py:9] TimeoutError: RPC call to sample_tokens timed out."
		port   = "ERROR 11-30 10:11:10 [core.py:9] OSError: [Errno 98] Address already in use"
		nccl   = "ERROR 11-30 10:11:16 [core.py:9] RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"
		copied = "WARNING 11-30 10:11:01 [system_utils.py:38] Overwriting environment variable NCCL_IB_HCA from 'rocep1s0f0' to 'rocep1s0f1'"
	)
	for name, test := range map[string]struct {
		logs []string
		want []int
	}{
		"a worker's memory and the head's end":       {[]string{dead, oom}, []int{59}},
		"NCCL on one rank and a time-out on another": {[]string{rpc + "\n" + dead, qp + "\n" + nccl}, []int{34}},
		"two that do not depend, in order of time":   {[]string{oom, port}, []int{92, 59}},
		"two in one log":                              {[]string{port + "\n" + oom}, []int{92, 59}},
		"a mechanism, nothing more":                   {[]string{dead + "\n" + nccl}, []int{0}},
		"a consequence, nothing more":                 {[]string{dead}, []int{0}},
		"a copied variable before what it made":       {[]string{nccl, copied}, []int{6}},
		"a copied variable and memory":                {[]string{copied + "\n" + oom}, []int{59, 6}},
		"an order of logs when a time is not known":   {[]string{"OSError: [Errno 28] No space left on device", port}, []int{67, 92}},
		"too few GPUs, whatever the addresses":        {[]string{"WARNING 04-01 02:45:50 ray_utils.py:320] The number of required GPUs exceeds the total number of available GPUs in the placement group.\n" + waitingLine}, []int{28}},
		"one cause of both ranks":                     {[]string{oom, oom}, []int{59}},
		"a condition after the error":                 {[]string{"NCCL INFO Channel 00/0 : 1[0] -> 0[0] via NET/Socket/0\n" + oom}, []int{59, 38}},
		"ready in one log overcomes an earlier other": {[]string{"INFO 11-30 10:20:00 [x.py:1] ok\nINFO:     Application startup complete.", oom}, nil},
		"ready in one log, then memory in another":    {[]string{"INFO 11-30 10:00:00 [x.py:1] ok\nINFO:     Application startup complete.", oom}, []int{59}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, rows(report(t, Evidence{}, test.logs...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInterleavedRanks(t *testing.T) {
	log := "(A pid=1) RuntimeError: Version mismatch: The cluster was started with:\n(B pid=2) INFO x\n(A pid=1)     Ray: 2.53.0\n(B pid=2)     Ray: 9.9.9\n" +
		"(A pid=1)     Python: 3.12.3\n(A pid=1) This process on node 192.168.200.13 was started with:\n(A pid=1)     Ray: 2.60.0\n(A pid=1)     Python: 3.11.2\n"
	got := report(t, pair(), log)
	if len(got.Causes) != 1 || !strings.Contains(got.Causes[0].Cause, "has Ray 2.60.0 and Python 3.11.2") {
		t.Errorf("%+v", got.Causes)
	}
}

func TestWhere(t *testing.T) {
	finding, _ := Explain("\x1b[36m(RayWorkerProc pid=71, ip=192.168.200.13)\x1b[0m torch.OutOfMemoryError: CUDA out of memory.", pair())
	if finding.Host != "10.1.230.181" || finding.Line != "(RayWorkerProc pid=71, ip=192.168.200.13) torch.OutOfMemoryError: CUDA out of memory." {
		t.Errorf("host %q, line %q", finding.Host, finding.Line)
	}
	scan := NewScan(Evidence{})
	if err := scan.Read(t.Context(), "b.log", "spark-b", strings.NewReader("one\n\nCUDA out of memory\n")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Line{{File: "b.log", Number: 3, Host: "spark-b", Text: "CUDA out of memory"}}, scan.Report().Causes[0].Lines); diff != "" {
		t.Error(diff)
	}
}

// Only what cannot heal ends a start that still runs.
func TestExplainFatal(t *testing.T) {
	for log, want := range map[string]bool{
		waitingLine: true,
		"OSError: [Errno 101] Network is unreachable":                               false,
		"Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds.": false,
		"distributed_init_method=tcp://10.1.230.180:43210 backend=nccl":             true,
		"ImportError: cannot import name 'x' from 'transformers' (/usr/lib)":        false,
		"RayWorkerProc rank=[1] died unexpectedly, shutting down executor.":         false,
	} {
		if finding, _ := Explain(log, broken()); finding.Fatal != want {
			t.Errorf("%s: fatal %v", log, finding.Fatal)
		}
	}
}

func TestEvidenceAlone(t *testing.T) {
	set := func(change func(*Evidence, *Node)) Evidence {
		evidence := pair()
		node := evidence.Nodes["10.1.230.181"]
		change(&evidence, &node)
		evidence.Nodes["10.1.230.181"] = node
		return evidence
	}
	for name, test := range map[string]struct {
		evidence Evidence
		want     []int
	}{
		"healthy":          {pair(), nil},
		"none":             {Evidence{}, nil},
		"address":          {broken(), []int{1}},
		"a VPN's address":  {over("wg0", "10.9.0.2"), []int{19}},
		"killed":           {set(func(_ *Evidence, n *Node) { n.Container = &Container{ExitCode: 137} }), []int{59}},
		"bus error":        {set(func(_ *Evidence, n *Node) { n.Container = &Container{ExitCode: 135} }), []int{29}},
		"crash":            {set(func(_ *Evidence, n *Node) { n.Container = &Container{ExitCode: 139} }), []int{0}},
		"a member is gone": {set(func(e *Evidence, _ *Node) { e.Ray = e.Ray[:1] }), []int{28}},
		"no GPU":           {set(func(e *Evidence, _ *Node) { e.Ray[1].GPUs = 0 }), []int{26}},
		"a group is left": {set(func(e *Evidence, _ *Node) {
			e.Groups = []Group{{State: "CREATED"}, {State: "PENDING"}, {State: "REMOVED"}}
		}), []int{27}},
		"a blank address": {set(func(_ *Evidence, n *Node) { n.Environment = map[string]string{"VLLM_HOST_IP": ""} }), []int{5}},
		"RDMA is off": {set(func(_ *Evidence, n *Node) {
			n.Environment = map[string]string{"VLLM_HOST_IP": "192.168.200.13", "NCCL_IB_DISABLE": "1"}
		}), []int{38}},
		"a store by itself": {set(func(e *Evidence, _ *Node) { e.Ray[1].ObjectStore = 36 * gib }), nil},
		"images": {set(func(e *Evidence, n *Node) {
			n.ImageID = "sha256:a"
			e.Nodes["10.1.230.180"] = Node{Identity: "192.168.200.12", ImageID: "sha256:b"}
		}), []int{78}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, rows(NewScan(test.evidence).Report())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRead(t *testing.T) {
	const log = "first\nOSError: [Errno 28] No space left on device\n"
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write([]byte(log))
	_ = writer.Close()
	wideLog := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune("ü 😀\r\n" + log)) {
		wideLog = append(wideLog, byte(unit), byte(unit>>8))
	}
	for name, content := range map[string][]byte{
		"plain": []byte(log), "gzip": packed.Bytes(), "UTF-16": wideLog,
		"no last line end": []byte(strings.TrimSpace(log)),
		"a long line":      []byte(strings.Repeat("x", 300<<10) + "\n" + log),
	} {
		t.Run(name, func(t *testing.T) {
			scan := NewScan(Evidence{})
			if err := scan.Read(t.Context(), "log", "", bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			got := scan.Report()
			if len(got.Causes) != 1 || got.Causes[0].Row != 67 || got.Causes[0].Lines[0].Number < 2 || got.Lines < 2 {
				t.Errorf("%+v", got)
			}
		})
	}
	for name, content := range map[string][]byte{"zstd": {0x28, 0xb5, 0x2f, 0xfd, 1, 2}, "broken gzip": packed.Bytes()[:20]} {
		if err := NewScan(Evidence{}).Read(t.Context(), "log", "", bytes.NewReader(content)); err == nil {
			t.Error("no error for", name)
		}
	}
	canceled, stop := context.WithCancel(t.Context())
	stop()
	if err := NewScan(Evidence{}).Read(canceled, "log", "", io.LimitReader(endless{}, 1<<20)); !errors.Is(err, context.Canceled) {
		t.Error("not stopped:", err)
	}
}

// endless is a log of empty lines.
type endless struct{}

func (endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = '\n'
	}
	return len(into), nil
}

func TestMask(t *testing.T) {
	for text, want := range map[string]string{
		"token hf_abcdefghijklmnop here":                      "token (hidden) here",
		"HF_TOKEN=hf_abcdefghijklmnop":                        "HF_TOKEN=(hidden)",
		"'api_key': ['correct-horse', 'battery-staple'], 'a'": "'api_key': [(hidden)], 'a'",
		"--api-key correct-horse --port 8000":                 "--api-key (hidden) --port 8000",
		"Authorization: Bearer abcdef0123456":                 "Authorization: Bearer (hidden)",
		"RAY_AUTH_TOKEN='0123456789abcdef'":                   "RAY_AUTH_TOKEN='(hidden)'",
		"http://user:pa55word@proxy:3128":                     "http://user:(hidden)@proxy:3128",
		"api_key=None, hf_token=None":                         "api_key=None, hf_token=None",
		"Avg prompt throughput: 12 tokens/s, token count 9":   "Avg prompt throughput: 12 tokens/s, token count 9",
		"InvalidAuthToken: token is missing":                  "InvalidAuthToken: token is missing",
	} {
		if got := Mask(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestStamp(t *testing.T) {
	want := stamp("INFO 11-30 10:11:12 [x.py:1] y")
	for _, text := range []string{
		"2026-11-30T10:11:12.123Z x", "(RayWorkerProc pid=1) [2026-11-30 10:11:12,345 E 1 1] x", "[rank0]:[E1130 10:11:12.123 x", "Nov 30 10:11:12 spark-a kernel: x",
		"2026-11-30 10:11:12,345\tINFO worker.py:1", "[Mon Nov 30 10:11:12 2026] x",
	} {
		if got := stamp(text); got != want || got == 0 {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"", "10:11:12", "loading [00:10:11<00:12:13]", "a b c d e f"} {
		if got := stamp(text); got != 0 {
			t.Errorf("%q: %d", text, got)
		}
	}
	if early := stamp("Nov  3 10:11:12 a"); early == 0 || early >= want {
		t.Error("a day of one digit:", early)
	}
}

func TestSaid(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain",
		"The actor died. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer": "The actor died. ",
		"marked dead. This can happen when a \t(1) raylet crashes unexpectedly (OOM)":                              "marked dead. ",
		"Received request cmpl-1: prompt: 'CUDA out of memory'":                                                    "",
	} {
		if got := said(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestFinder(t *testing.T) {
	f := newFinder([][]string{{"he", "hers"}, {"she"}, {"is", "hers"}, {"é"}})
	for text, want := range map[string][]int{"": nil, "ushers": {0, 1, 2}, "this": {2}, "café": {3}, "hxe": nil, "hehe": {0}} {
		if got := f.find(text, nil); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// What cannot be told from a log or from what Ray answers; preflight knows these.
func TestCatalogue(t *testing.T) {
	ids, covered := map[string]bool{}, map[int]bool{}
	for _, section := range Catalogue() {
		for _, rule := range section.Rules {
			if ids[rule.ID] || rule.ID == "" || rule.Message == "" || rule.Cause == "" || rule.Fix == "" {
				t.Errorf("%s %q: not whole, or twice", section.Title, rule.ID)
			}
			ids[rule.ID] = true
			covered[rule.Row] = true
			for _, explained := range rule.Explains {
				defer func() {
					if !ids[explained] {
						t.Errorf("%s explains %s, which there is not", rule.ID, explained)
					}
				}()
			}
		}
	}
	for _, test := range allRows() {
		covered[test.row] = true
	}
	for _, row := range []int{5, 52, 78} {
		covered[row] = true // TestEvidenceAlone.
	}
	// Found at a gate or at run time, by the catalogue of failures.
	for _, row := range []int{1, 2, 3, 5, 13, 22, 23, 26, 27, 28, 32, 38, 45, 46, 47, 50, 54, 56, 59, 62, 63, 64, 75, 79, 82, 84, 86, 87, 88, 89, 94, 103, 106} {
		if !covered[row] {
			t.Errorf("row %d is not told", row)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, test := range allRows() {
		f.Add(test.log, true)
	}
	for _, log := range healthy() {
		f.Add(log, false)
	}
	f.Add("\x1f\x8b\x08", false)
	f.Add("\xff\xfea", false)
	f.Fuzz(func(t *testing.T, log string, known bool) {
		evidence := Evidence{}
		if known {
			evidence = broken()
		}
		scan := NewScan(evidence)
		_ = scan.Read(t.Context(), "log", "", strings.NewReader(log))
		got := scan.Report()
		for _, one := range slices.Concat(got.Causes, got.Harmless) {
			if one.Cause == "" || one.Fix == "" || one.ID == "" {
				t.Errorf("unfinished: %+v", one)
			}
			for _, line := range one.Lines {
				if line.Number < 1 || len(line.Text) > shownText+8 || strings.ContainsAny(line.Text, "\n\r\x1b") {
					t.Errorf("line: %+v", line)
				}
			}
		}
	})
}

func BenchmarkScan(b *testing.B) {
	log := strings.Repeat(strings.Join(noise, "\n")+"\n", 100)
	b.SetBytes(int64(len(log)))
	for range b.N {
		if err := NewScan(Evidence{}).Read(b.Context(), "log", "", strings.NewReader(log)); err != nil {
			b.Fatal(fmt.Errorf("scan: %w", err))
		}
	}
}
