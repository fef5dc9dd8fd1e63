package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// factsSamples are many: each takes a fraction of a second.
const factsSamples = 9

// factsCall is a look at the head, whose agent runs already.
func (b *bench) factsCall() contest {
	return contest{
		id: idFacts, unit: seconds, samples: factsSamples,
		value: side{
			name: "facts call",
			sample: func(ctx context.Context) (float64, error) {
				if _, err := b.nodes[0].Agent(ctx); err != nil {
					return 0, err
				}
				b.nodes[0].Changed()
				return timed(func(ctx context.Context) error {
					_, err := b.nodes[0].Facts(ctx)
					return err
				})(ctx)
			},
			what: "all facts of a node in one call of its agent, which runs already; no added delay",
		},
		baseline: side{
			name: "by commands",
			sample: timed(func(ctx context.Context) error {
				_, err := b.ssh(ctx, 0, "nvidia-smi -q >/dev/null; nvidia-smi --query-gpu=name,uuid,driver_version --format=csv; ip -o addr; ip route; cat /proc/meminfo; "+
					"grep -r . /sys/class/infiniband/*/ports/*/gid_attrs 2>/dev/null; df -k / /home; id; uname -a; cat /etc/os-release; ss -ltn; docker info")
				return err
			}),
			what: "a connection of OpenSSH and the commands that tell most of the same: nvidia-smi, ip, meminfo, GID tables, df, id, uname, ss, docker info",
		},
		floor: side{
			name: "nvidia-smi alone",
			sample: func(ctx context.Context) (float64, error) {
				output, err := b.ssh(ctx, 0, timedThere("nvidia-smi --query-gpu=index,name,uuid,driver_version --format=csv,noheader >/dev/null"))
				if err != nil {
					return 0, err
				}
				return timeThere(output)
			},
			what: "one query of nvidia-smi, timed on the node: the lab's is a shell script, a real one takes longer",
		},
	}
}

// timedThere is a command for the shell of a node that prints for how long another one ran, if that
// succeeds; timeThere reads the seconds.
func timedThere(command string) string {
	return "start=$(date +%s%N); " + command + " && echo $(($(date +%s%N) - start))"
}

func timeThere(output string) (float64, error) {
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(output), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("a node printed %q instead of its time", output)
	}
	return time.Duration(nanoseconds).Seconds(), nil
}

// handshakes counts the SSH connections of an idle plan at the proxies that lead to the nodes.
func (b *bench) handshakes() contest {
	counted := func(act func(context.Context) error) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			if err := b.deploy(ctx); err != nil {
				return 0, err
			}
			before := b.connections()
			err := act(ctx)
			return float64(b.connections()-before) / float64(len(b.proxies)), err
		}
	}
	checks := func(ctx context.Context) error {
		_, err := b.script(ctx, "checks.sh", "record")
		return err
	}
	return contest{
		id: idHandshakes, unit: logins, samples: 1,
		value:    side{name: "terraform plan", sample: counted(func(ctx context.Context) error { return b.real.idlePlan(ctx) }), what: "SSH connections a node of an idle plan of two nodes, a cluster and a deployment, counted where they pass"},
		baseline: side{name: "ssh, one connection a check", sample: counted(checks), what: "the shell script that compares 13 facts over OpenSSH"},
		floor: side{
			name: "one", what: "a node cannot be asked without a connection",
			sample: func(context.Context) (float64, error) { return 1, nil },
		},
	}
}

// connections are all that the proxies have accepted so far.
func (b *bench) connections() int64 {
	var sum int64
	for _, one := range b.proxies {
		sum += one.Connections()
	}
	return sum
}
