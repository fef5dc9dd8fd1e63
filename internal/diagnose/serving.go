package diagnose

import (
	"fmt"
	"strings"
	"time"
)

const (
	// anyException is the rule for what no other rule knows.
	anyException = "exception"
	// readyLimit is a little below vLLM's own limit for a start, 600 s by default.
	readyLimit  = 590 * time.Second
	compareHelp = "Compare with `vllm serve --help=all` in the image, and pin the image."
	slowStart   = "The model was still loading when vLLM's limit for a start ran out."
	raiseLimit  = "Raise VLLM_ENGINE_READY_TIMEOUT_S (in seconds; vLLM's default is 600, 3600 suits 100 GB)."
	raiseHere   = "Raise VLLM_ENGINE_READY_TIMEOUT_S in env (in seconds; vLLM's default is 600, 3600 suits 100 GB)."
)

// servingRules know vLLM's flags, and how a server starts and dies.
func servingRules() []Rule {
	return []Rule{
		{
			ID: "unknown-flag", Row: 83, Kind: Root, Fatal: true,
			Any:     []string{"unrecognized arguments", "no such option", "unexpected keyword argument"},
			Pattern: `unrecognized arguments:? *(.*)|[Nn]o such option:? *(\S*)|(?:EngineArgs|AsyncEngineArgs|VllmConfig).*unexpected keyword argument '(\w+)'`,
			Message: "vllm serve: error: unrecognized arguments: --disable-log-requests",
			Cause:   "vLLM in this image does not know that flag.",
			Fix:     "Leave it out; flags come and go between releases: `vllm serve --help=all` in the image lists them.",
			Here:    "Remove it from args; flags come and go between releases: `vllm serve --help=all` in the image lists them.",
			Refine: func(hit Hit, evidence Evidence) Answer {
				flag := strings.TrimSpace(hit.Match[1] + hit.Match[2] + hit.Match[3])
				if flag == "" {
					return Answer{}
				}
				image := "this image"
				if evidence.Image != "" {
					image = "the image " + evidence.Image
				}
				return Answer{Cause: fmt.Sprintf("vLLM in %s does not know %s.", image, flag)}
			},
		},
		{
			ID: "invalid-flags", Row: 95, Kind: Root,
			Any:     []string{"not allowed with argument", "mutually exclusive", "cannot be used together", "are incompatible", "invalid choice:", "expected one argument"},
			Pattern: `error: argument .*|mutually exclusive|cannot be used together|[a-z_-]+ (?:and|with) [\w -]+ are incompatible`,
			Message: "error: argument --x: not allowed with argument --y",
			Cause:   "Flags exclude each other, or a value is none that this vLLM knows: what was right for another release is not for this one.",
			Fix:     compareHelp,
		},
		{
			ID: "validation", Row: 95, Kind: Mechanism, Follow: 2,
			Any:     []string{"validation error for", "validation errors for"},
			Pattern: `validation errors? for \w*(?:Config|EngineArgs)`,
			Message: "1 validation error for ModelConfig",
			Cause:   "vLLM refuses a setting: flags exclude each other, or a value is none that this vLLM knows.",
			Fix:     compareHelp,
			Refine: func(hit Hit, _ Evidence) Answer {
				if _, why, found := strings.Cut(hit.Text, "Value error, "); found {
					why, _, _ = strings.Cut(why, "\n")
					return Answer{Cause: "vLLM refuses a setting: " + shown(why)}
				}
				return Answer{}
			},
		},
		{
			ID: "empty-answer", Row: 84, Kind: Condition,
			Any:     []string{`"content":`},
			Pattern: `"content":\s*(?:null|"").*"completion_tokens":\s*[1-9]`,
			Unless:  []string{`"tool_calls":[{`, `"tool_calls": [{`, `"delta"`},
			Message: `"content":null … "completion_tokens":412`,
			Cause:   "The model wrote tokens, and the answer is empty: the reasoning parser swallowed them, because it waits for an opening tag that this model does not write.",
			Fix:     "Use another --reasoning-parser (deepseek_r1 for models that start thinking without a tag).",
			Refine: func(hit Hit, _ Evidence) Answer {
				for _, field := range []string{`"reasoning":"`, `"reasoning": "`, `"reasoning_content":"`, `"reasoning_content": "`} {
					if _, rest, found := strings.Cut(hit.Text, field); found && !strings.HasPrefix(rest, `"`) {
						return declined() // It thought until its tokens were used up.
					}
				}
				return Answer{}
			},
		},
		{
			ID: "slow-start", Row: 85, Kind: Root, Fatal: true,
			Any:     []string{"Timed out waiting for engine core processes to start", "Timed out waiting for engines to"},
			Message: "TimeoutError: Timed out waiting for engine core processes to start",
			Cause:   slowStart, Fix: raiseLimit, Here: raiseHere,
		},
		{
			ID: "engine-failed", Kind: Consequence,
			Any:     []string{"Engine core initialization failed", "EngineCore failed to start", "WorkerProc initialization failed", "WorkerProc failed to start"},
			Message: "Engine core initialization failed. See root cause above",
			Cause:   "vLLM's engine did not start, and this log does not say why.",
			Fix:     "The cause is further up, or in the log of another rank: give the whole log, and those of all nodes.",
			Refine: func(hit Hit, evidence Evidence) Answer {
				if max(evidence.Waited(), time.Duration(hit.Waited)*time.Second) < readyLimit {
					return Answer{}
				}
				return Answer{Row: 85, Cause: slowStart, Fix: raiseLimit, Here: raiseHere}
			},
		},
		{
			ID: "sample-timeout", Row: 86, Kind: Mechanism,
			Any:     []string{"RPC call to "},
			Pattern: `RPC call to (\w+) timed out`,
			Message: "TimeoutError: RPC call to sample_tokens timed out",
			Cause:   "A rank did not answer in time: it compiles kernels for the first request, hangs in a collective, or is dead.",
			Fix:     "If all nodes are alive, raise VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS (1800 is usual) and send a first request before the users do. If it comes back, try --enforce-eager or NCCL 2.30.4 or newer.",
			Here:    "If all nodes are alive, raise VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS in env (1800 is usual).",
			Refine: func(hit Hit, _ Evidence) Answer {
				return Answer{Cause: fmt.Sprintf("A rank did not answer %s in time: it compiles kernels for the first request, hangs in a collective, or is dead.", hit.Match[1])}
			},
		},
		{
			ID: "meeting", Row: 88, Kind: Mechanism,
			Any:     []string{"clients joined", "DistStoreError", "The client socket has timed out", "seconds waiting for clients"},
			Detail:  `(\d+)/(\d+) clients joined`,
			Message: "DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined",
			Cause:   "Not all ranks came to the meeting point in time: they started too late, died, or cannot reach it.",
			Fix:     "Look at the other nodes' logs; start all ranks together, with one --master-addr that all of them reach.",
			Here:    "Look at the other nodes' Ray containers; apply again starts all ranks together.",
			Refine: func(hit Hit, _ Evidence) Answer {
				if hit.Match[2] == "" {
					return Answer{}
				}
				return Answer{Cause: fmt.Sprintf("Only %s of %s ranks came to the meeting point in time: the others started too late, died, or cannot reach it.", hit.Match[1], hit.Match[2])}
			},
		},
		{
			ID: "port", Row: 92, Kind: Root, Fatal: true,
			Any:     []string{"ddress already in use", "port is already allocated"},
			Pattern: `port is already allocated|(?:[Ee]rrno:? ?98|EADDRINUSE|ZMQError|[Bb]ind|listen|[Ff]ailed to|OSError|RuntimeError).*[Aa]ddress already in use`,
			Unless:  []string{"Retrying", "retrying", "trying port"},
			Message: "[Errno 98] Address already in use",
			Cause:   "Another process listens on a port that the server needs: often one that was left over.",
			Fix:     "`ss -ltnp` on the host names it: stop it, or choose another port.",
			Refine: func(_ Hit, evidence Evidence) Answer {
				if evidence.Port == 0 {
					return Answer{}
				}
				return Answer{
					Cause: fmt.Sprintf("Another process listens on port %d of the host.", evidence.Port),
					Fix:   fmt.Sprintf("`ss -ltnp 'sport = :%d'` there names it: stop it, or choose another port.", evidence.Port),
				}
			},
		},
		{
			ID: "key-in-log", Row: 94, Kind: Condition,
			Any:     []string{"api_key", "api-key", "hf_token"},
			Pattern: `(?:'api_key': \[?'|api_key=\[?'|--api-key[= ]'?|'hf_token': '|hf_token=')([^'\s\]*(<]{6,})`,
			Message: "non-default args: {'api_key': ['sk-…']}",
			Cause:   "vLLM printed its API key: everyone who reads this log has it.",
			Fix:     "Change the key, and pass it by the environment (VLLM_API_KEY) or a file of mode 0600 instead of an argument.",
		},
		{
			ID: "semaphores", Kind: Root,
			Any:     []string{"_semlock = _multiprocessing.SemLock._rebuild"},
			Message: "_multiprocessing.SemLock._rebuild(*state) … FileNotFoundError",
			Cause:   "The semaphores of a worker were deleted under it: systemd-logind removes them when the login session that started it ends (RemoveIPC=yes). The other ranks then wait for ever.",
			Fix:     "`sudo loginctl enable-linger` for that user, or RemoveIPC=no in logind.conf; or run it in a container of its own.",
		},
		{
			ID: "segfault", Kind: Mechanism,
			Any:     []string{"Segfault encountered", "SIGSEGV received", "Segmentation fault", "Fatal Python error"},
			Message: "!!!!!!! Segfault encountered !!!!!!!",
			Cause:   "A process crashed in native code.",
			Fix:     "The stack below that line names the library. Try another image, and --enforce-eager.",
		},
		{
			ID: "socket-path", Kind: Root,
			Any:     []string{"AF_UNIX path too long", "AF_UNIX path length cannot exceed", "is longer than 107 characters"},
			Message: "OSError: AF_UNIX path length cannot exceed 107 bytes",
			Cause:   "A temporary folder has too long a name for a socket.",
			Fix:     "Use a short one: TMPDIR=/tmp, --temp-dir=/tmp/ray.",
		},
		{
			ID: "open-files", Kind: Root,
			Any:     []string{"Too many open files"},
			Message: "OSError: [Errno 24] Too many open files",
			Cause:   "The limit of open files is too low.",
			Fix:     "Run the container with --ulimit nofile=65536.",
		},
		{
			ID: "compile-failed", Kind: Mechanism,
			Any:     []string{"InductorError", "triton.compiler.errors", "torch._dynamo.exc", "CompilationError"},
			Message: "torch._inductor.exc.InductorError",
			Cause:   "torch.compile or Triton could not compile a kernel for this model and GPU.",
			Fix:     "Start with --enforce-eager, or use an image with another vLLM and Triton; empty the compile caches (~/.cache/vllm, ~/.triton) if they are of another image.",
		},
		{
			ID: anyException, Kind: Mechanism,
			Any: []string{"Error: ", "Exception: "},
			Unless: []string{
				"Engine core initialization failed", "EngineDeadError", "RayTaskError", "ActorDiedError", "initialization failed due to an exception",
				"WARNING", "HTTPException", "CancelledError", "KeyboardInterrupt", "died unexpectedly",
			},
			Pattern:  `(?:^|[\s\])])((?:\w+\.)*[A-Z]\w*(?:Error|Exception): \S.*)$`,
			Explains: []string{"engine-failed", "engine-dead", "rank-died"},
			Message:  "ValueError: … before Engine core initialization failed",
			Cause:    "The program stopped by an exception.",
			Fix:      "Its text and the lines around it say what it could not do; search for that text in the project's issues, and try another image if it is a fault of the program.",
			Refine: func(hit Hit, _ Evidence) Answer {
				return Answer{Cause: "The program stopped by an exception: " + shown(hit.Match[1])}
			},
		},
		{
			ID: "engine-dead", Kind: Consequence,
			Any:     []string{"EngineDeadError", "EngineCore encountered", "AsyncEngineDeadError", "Got fatal signal from worker processes", "recvValue failed", "Connection closed by peer", "Failed to recv, got 0 bytes", "transport/tcp/pair.cc"},
			Message: "EngineDeadError: EngineCore encountered an issue",
			Cause:   "vLLM's engine stopped, and this log does not say why.",
			Fix:     "The cause is further up, or in the log of another rank: give the logs of all nodes.",
		},
	}
}
