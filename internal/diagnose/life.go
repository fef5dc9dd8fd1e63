package diagnose

import (
	"fmt"
	"time"
)

// readyLimit is a little below vLLM's own limit for a start, 600 s by default.
const readyLimit = 590 * time.Second

// lifeRules know how a server starts and dies. The last ones are
// consequences and explain little; they come last.
func lifeRules() []rule {
	return []rule{
		{85, `Timed out waiting for engine core processes to start`, true, fixed(slowStart, raiseLimit)},
		{88, `DistStoreError: Timed out after \d+ seconds waiting for clients\. (\d+)/(\d+) clients joined`, false, func(match []string, _ Evidence) (string, string) {
			return fmt.Sprintf("Only %s of %s ranks came to the meeting point in time: the others started too late, died, or cannot reach it.", match[1], match[2]),
				"Look at the other nodes' Ray containers; apply again starts all ranks together."
		}},
		{92, `\[?[Ee]rrno 98\]?[^\n]*[Aa]ddress already in use`, true, func(_ []string, evidence Evidence) (string, string) {
			if evidence.Port == 0 {
				return "Another process listens on a port that the server needs.", "`ss -ltnp` on the host names it: stop it, or choose another port."
			}
			return fmt.Sprintf("Another process listens on port %d of the host.", evidence.Port),
				fmt.Sprintf("`ss -ltnp 'sport = :%d'` there names it: stop it, or choose another port.", evidence.Port)
		}},
		{86, `RPC call to (\w+) timed out`, false, func(match []string, _ Evidence) (string, string) {
			return fmt.Sprintf("A rank did not answer %s in time: it compiles kernels for the first request, or it is dead.", match[1]),
				"If all nodes are alive, raise VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS in env (1800 is usual)."
		}},
		{89, `ActorDiedError|ActorUnavailableError|[Nn]ode has died|RayWorkerProc[^\n]* died unexpectedly|worker proc(?:ess)? \S* ?died unexpectedly`, false, fixed(
			"A rank died, and vLLM cannot go on without it.",
			"Look at the Ray container of each node (`docker logs`), memory and the kernel's log (`dmesg`) for why; apply again starts all ranks together.")},
		{85, `Engine core initialization failed`, true, func(_ []string, evidence Evidence) (string, string) {
			if evidence.Waited < readyLimit {
				return "", ""
			}
			return slowStart, raiseLimit
		}},
	}
}

const (
	slowStart  = "The model was still loading when vLLM's limit for a start ran out."
	raiseLimit = "Raise VLLM_ENGINE_READY_TIMEOUT_S in env (in seconds; vLLM's default is 600, 3600 suits 100 GB)."
)
