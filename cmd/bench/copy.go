package main

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
)

const (
	// copyFolder is in memory, so that it is the transport that is measured and not the lab's disk.
	copyFolder = "/dev/shm/spark-bench"
	// copyFiles files of copySize bytes: 1 GiB, as four shards.
	copyFiles = 4
	copySize  = 256 << 20
	// copySamples of each side.
	copySamples = 3
	// dropCopy removes the files of an earlier sample.
	dropCopy = "rm -rf " + copyFolder + "/model"
)

// copy is the way of a model from one node to the other.
func (b *bench) copy() contest {
	prepared := false
	from := copyFolder + "/model"
	// fresh runs an act that returns its seconds, with the files on the head and nothing on the worker.
	fresh := func(act func(context.Context) (float64, error)) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			if !prepared {
				if err := b.prepareCopy(ctx); err != nil {
					return 0, err
				}
				prepared = true
			}
			if _, err := b.ssh(ctx, 1, dropCopy); err != nil {
				return 0, err
			}
			took, err := act(ctx)
			if err != nil {
				return 0, err
			}
			seen, err := b.ssh(ctx, 1, "cat "+from+"/* | wc -c")
			if err == nil && strings.TrimSpace(seen) != strconv.Itoa(copyFiles*copySize) {
				err = fmt.Errorf("%s bytes arrived", strings.TrimSpace(seen))
			}
			return copyFiles * copySize / 1e6 / took, err
		}
	}
	rsync := func(options string) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) { return b.rsync(ctx, options) }
	}
	return contest{
		id: idCopy, unit: megabytesS, samples: copySamples,
		value: side{
			name: "agent to agent", sample: fresh(timed(func(ctx context.Context) error { return b.stage(ctx, from) })),
			what: "1 GiB in four files over the fabric, memory to memory, by the provider's agents: listing, copy, sha256 of every file and the proof afterwards; both ends and the client share this machine's cores",
		},
		baseline: side{
			name: "rsync -a over ssh", sample: fresh(rsync("")),
			what: "from node to node over the fabric, as the launchers in use do; OpenSSH's defaults; no proof of the content",
		},
		floor: side{
			name: "raw TCP", sample: fresh(b.rawCopy),
			what: "four plain TCP connections with sendfile and splice, no digest, no encryption",
		},
		also: []side{{
			name: "rsync -a over ssh, AES", sample: fresh(rsync("-c aes128-gcm@openssh.com")),
			what: "the same with the cipher that a careful person picks",
		}},
	}
}

// prepareCopy makes the files, and what rsync and the raw copy need on the nodes.
func (b *bench) prepareCopy(ctx context.Context) error {
	generate := fmt.Sprintf("mkdir -p %[1]s/model && for i in $(seq %[2]d); do head -c %[3]d /dev/urandom >%[1]s/model/$i.bin; done", copyFolder, copyFiles, copySize)
	if _, err := b.ssh(ctx, 0, generate); err != nil {
		return err
	}
	known := fmt.Sprintf("printf '%%s %%s\\n' %s '%s' >%s/known_hosts", b.lab.Nodes[1].Management, b.keys[1], copyFolder)
	if _, err := b.ssh(ctx, 0, known); err != nil {
		return err
	}
	return b.sendProgram(ctx)
}

// rsync copies with rsync on the head, which has no key of its own: it is lent ours by an agent that
// lives as long as the command. The time is taken there.
func (b *bench) rsync(ctx context.Context, options string) (float64, error) {
	worker := b.lab.Nodes[1]
	remote := "mkdir -p " + copyFolder + "; " + timedThere(fmt.Sprintf(
		"rsync -a -e 'ssh %[2]s -o BatchMode=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile=%[1]s/known_hosts -o HostKeyAlias=%[3]s' "+
			"--rsync-path='mkdir -p %[1]s && rsync' %[1]s/model %[4]s:%[1]s/",
		copyFolder, options, worker.Management, worker.Fabric))
	output, err := b.program(ctx, nil, "ssh-agent", "bash", "-c", `ssh-add -q "$1" && exec ssh -A -F "$2" "$3" "$4"`,
		"rsync", b.lab.Key, b.sshConfig(), b.lab.Nodes[0].Name, remote)
	if err != nil {
		return 0, err
	}
	return timeThere(output)
}

// remoteProgram is this program on the nodes: in the home folder, since programs may not be run from /dev/shm.
func (b *bench) remoteProgram() string { return path.Join(b.home, "bench") }
