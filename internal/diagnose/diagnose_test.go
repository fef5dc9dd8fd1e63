package diagnose

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// noise is what a log of a failed start has beside its failure: nothing in it is a cause.
var noise = strings.Split(strings.TrimSpace(`
(APIServer pid=1) INFO 11-30 10:10:01 [utils.py:233] non-default args: {'model_tag': '/model', 'host': '0.0.0.0', 'api_key': None, 'tensor_parallel_size': 2, 'distributed_executor_backend': 'ray'}
(APIServer pid=1) INFO 11-30 10:10:02 [model.py:514] Resolved architecture: Qwen3_5MoeForConditionalGeneration
WARNING 11-30 10:10:03 [ray_utils.py:339] Tensor parallel size (2) exceeds available GPUs (1). This may result in Ray placement group allocation failures.
/usr/local/lib/python3.12/dist-packages/ray/_private/worker.py:2062: FutureWarning: Tip: In future versions of Ray, Ray will no longer override accelerator visible devices env var if num_gpus=0
(RayWorkerProc pid=71, ip=192.168.200.13) WARNING 11-30 10:10:05 [system_utils.py:38] Overwriting environment variable LD_LIBRARY_PATH from '/usr/local/nvidia/lib' to '/usr/local/cuda/lib64'
Found GPU0 NVIDIA GB10 which is of cuda capability 12.1. Minimum and Maximum cuda capability supported by this version of PyTorch is (8.0) - (12.0)
spark-a:90:90 [0] NCCL INFO NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file or directory No plugin found (libnccl-net.so), using internal implementation
spark-a:90:95 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'rocep1s0f0'
spark-a:90:95 [0] NCCL INFO Call to ibv_set_ece failed with error Operation not supported errno 95
(RayWorkerProc pid=71) WARNING 11-30 10:10:07 [custom_all_reduce.py:92] Custom allreduce is disabled because this process group spans across nodes.
[W1130 10:10:08.123 socket.cpp:200] [c10d] The hostname of the client socket cannot be retrieved. err=-3
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   67C    P0             16W /  N/A  | Not Supported          |      0%      Default |
[2026-11-30 10:10:09,345 E 1 1] core_worker_process.cc:837: Failed to establish connection to the metrics exporter agent. Metrics will not be exported.
INFO 11-30 10:10:10 [shm_broadcast.py:548] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work
INFO 11-30 10:10:11 [logger.py:42] Received request cmpl-1: prompt: 'Why do I get torch.OutOfMemoryError: CUDA out of memory or [Errno 98] Address already in use?', params: SamplingParams(n=1)
[rank1]:[W1130 10:10:12.480 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=67, addr=[bogon]:36214, remote=[bogon]:43145): Broken pipe
Nov 30 10:10:13 spark-a kernel: pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, id=00e8(Receiver ID)
(raylet) Raylet is up. Possible reasons include: (1) SIGKILL by the user or system OOM killer, (2) Invalid memory access from Raylet causing SIGSEGV or SIGBUS
/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown
`), "\n")

// consequence is how a start ends, whatever the cause.
const consequence = `
(EngineCore_DP0 pid=123) ERROR 11-30 10:19:30 [core.py:842] EngineCore failed to start.
ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
[rank0]:[W1130 10:19:31.1 ProcessGroupNCCL.cpp:1783] [PG ID 0 PG GUID 0 Rank 0] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Broken pipe
`

func allRows() []rowTest { return slices.Concat(controlRows(), serverRows()) }

func report(t *testing.T, evidence Evidence, logs ...string) Report {
	t.Helper()
	scan := NewScan(evidence)
	for i, log := range logs {
		if err := scan.Read(t.Context(), fmt.Sprintf("log%d", i), "", strings.NewReader(log)); err != nil {
			t.Fatal(err)
		}
	}
	return scan.Report()
}

func TestRows(t *testing.T) {
	for _, test := range allRows() {
		t.Run(fmt.Sprintf("%d %s", test.row, test.name), func(t *testing.T) {
			finding, found := Explain("first line\n"+test.log+"\nlast line", test.evidence)
			whole := report(t, test.evidence, test.log)
			if len(whole.Causes) == 0 || whole.Causes[0].Row != test.row {
				t.Fatalf("want row %d: %+v", test.row, whole.Causes)
			}
			if found && whole.Causes[0].Kind != Condition && finding.Row != test.row {
				t.Fatalf("row %d, want %d: %s", finding.Row, test.row, finding)
			}
			says := whole.Causes[0].Cause + " " + whole.Causes[0].Fix + " " + whole.Causes[0].Here
			for _, part := range test.says {
				if !strings.Contains(says, part) {
					t.Errorf("%q is not in: %s", part, says)
				}
			}
			if whole.Causes[0].Cause == "" || whole.Causes[0].Fix == "" || strings.Contains(says, "  ") && whole.Causes[0].Here != "" {
				t.Errorf("unfinished: %s", says)
			}
		})
	}
}

// dressings are the ways in which a log reaches us.
func dressings() map[string]func(string) string {
	each := func(dress func(i int, line string) string) func(string) string {
		return func(log string) string {
			var lines []string
			for i, line := range strings.Split(log, "\n") {
				lines = append(lines, dress(i, line))
			}
			return strings.Join(lines, "\n")
		}
	}
	return map[string]func(string) string{
		"colours": each(func(_ int, line string) string { return "\x1b[36m" + line + "\x1b[0m" }),
		"ray": each(func(_ int, line string) string {
			return "\x1b[36m(RayWorkerProc pid=71, ip=192.168.200.13)\x1b[0m " + line
		}),
		"engine":   each(func(_ int, line string) string { return "(EngineCore_DP0 pid=223840) " + line }),
		"docker":   each(func(i int, line string) string { return fmt.Sprintf("2026-11-30T10:11:%02d.123456789Z %s", i%60, line) }),
		"compose":  each(func(_ int, line string) string { return "vllm-1  | " + line }),
		"kubectl":  each(func(_ int, line string) string { return "[pod/vllm-0/vllm] 2026-11-30T10:11:12.000000000Z " + line }),
		"journald": each(func(_ int, line string) string { return "Nov 30 10:11:12 spark-a dockerd[812]: " + line }),
		"windows":  func(log string) string { return strings.ReplaceAll(log, "\n", "\r\n") },
		"bytes":    each(func(_ int, line string) string { return line + " \xff\xfe" }),
		"json": each(func(_ int, line string) string {
			entry, _ := json.Marshal(map[string]string{"log": line + "\n", "stream": "stderr", "time": "2026-11-30T10:11:12.3Z"})
			return string(entry)
		}),
		"noise": func(log string) string {
			return strings.Join(noise, "\n") + "\n" + log + "\n" + strings.Join(noise[:8], "\n")
		},
		"ends": func(log string) string { return log + consequence },
		"pids and sizes": func(log string) string {
			return regexp.MustCompile(`pid=\d+|\b\w+\.(?:py|cc|h|cpp):\d+`).ReplaceAllStringFunc(log, func(part string) string {
				return part[:strings.LastIndexAny(part, "=:")+1] + "4711"
			})
		},
	}
}

func TestRowsInEveryDress(t *testing.T) {
	for name, dress := range dressings() {
		t.Run(name, func(t *testing.T) {
			for _, test := range allRows() {
				lines := strings.HasPrefix(test.log, "{") && name != "noise" && name != "ends" && name != "windows"
				if lines || name == "json" && strings.Contains(test.log, "\r") {
					continue // An answer of the API is no line of a log; a bar is overwritten, not escaped.
				}
				if strings.HasSuffix(test.name, "by the log") && slices.Contains([]string{"docker", "kubectl", "journald", "json"}, name) {
					continue // The dress has times of its own.
				}
				if strings.HasPrefix(test.name, "wrapped") && !slices.Contains([]string{"noise", "ends", "windows", "colours", "pids and sizes"}, name) {
					continue // A terminal breaks lines behind the prefixes.
				}
				if name == "ray" && test.evidence.Host != "" || name == "ends" && strings.HasPrefix(test.name, "ready limit by") {
					continue // The evidence is of another node; a rank that died says more than a clock.
				}
				got := report(t, test.evidence, dress(test.log))
				at := slices.IndexFunc(got.Causes, func(one Cause) bool { return one.Row == test.row })
				if at < 0 || at > 0 && got.Causes[at].Kind != Condition {
					var rows []string
					for _, one := range got.Causes {
						rows = append(rows, fmt.Sprintf("%d %s %v", one.Row, one.ID, one.Lines))
					}
					t.Errorf("%d %s: got %q", test.row, test.name, rows)
				}
			}
		})
	}
}
