package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// lab is the part of lab/info that is needed here.
type lab struct {
	User       string `json:"user"`
	Key        string `json:"private_key_file"`
	KnownHosts string `json:"known_hosts_file"`
	Images     struct {
		VLLM string `json:"vllm"`
	} `json:"images"`
	ModelPath string    `json:"model_path"`
	Nodes     []labNode `json:"nodes"`
}

type labNode struct {
	Name            string `json:"name"`
	Management      string `json:"management_address"`
	Fabric          string `json:"fabric_address"`
	FabricInterface string `json:"fabric_interface"`
}

// readLab asks lab/info; the working folder is the repository's root.
func readLab(ctx context.Context) (lab, error) {
	var found lab
	output, err := exec.CommandContext(ctx, "lab/info").Output()
	if err != nil {
		return found, fmt.Errorf("%w: the lab must be up: make lab", errStart)
	}
	if err := json.Unmarshal(output, &found); err != nil {
		return found, fmt.Errorf("%w: lab/info printed what is not its JSON: %w", errStart, err)
	}
	if len(found.Nodes) < 2 {
		return found, fmt.Errorf("%w: the lab has %d node, and two are needed: make lab NODES=2", errStart, len(found.Nodes))
	}
	found.Nodes = found.Nodes[:2]
	return found, nil
}

// hostKey is the trusted key of a node as an authorized_keys line.
func (l lab) hostKey(node labNode) (string, error) {
	content, err := os.ReadFile(l.KnownHosts)
	if err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) >= 3 && fields[0] == node.Management && fields[1] == "ssh-ed25519" {
			return fields[1] + " " + fields[2], nil
		}
	}
	return "", fmt.Errorf("%s has no ssh-ed25519 key of %s", l.KnownHosts, node.Management)
}
