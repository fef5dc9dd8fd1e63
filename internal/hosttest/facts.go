package hosttest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// What a DGX Spark says of itself.
const (
	gpuName       = "NVIDIA GB10"
	driverVersion = "580.95.05"
	kernelVersion = "6.14.0-1013-nvidia"
	osName        = "Ubuntu 24.04.3 LTS"
)

// factsRoot is the folder in whose place of "/" the agent reads /sys, /proc and /etc.
func (h *Host) factsRoot() string { return h.root + ".system" }

// publish writes the world's files below factsRoot. The lock is held.
func (h *Host) publish() error {
	port := "/sys/class/infiniband/" + RDMADevice + "/ports/1/"
	index := strconv.Itoa(h.gidIndex)
	if err := os.RemoveAll(h.factsRoot() + port + "gids"); err != nil {
		return err
	}
	files := map[string]string{
		"/etc/os-release": fmt.Sprintf("NAME=\"Ubuntu\"\nPRETTY_NAME=%q\n", osName),
		"/proc/meminfo": fmt.Sprintf("MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB\n",
			h.memory[0]>>10, h.memory[2]>>10, h.memory[1]>>10),
		"/proc/net/route": "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
			ManagementInterface + "\t00000000\t0100007F\t0003\t0\t0\t100\t00000000\t0\t0\t0\n",
		"/usr/bin/nvidia-container-runtime-hook": "",
		"/dev/infiniband/uverbs0":                "",
		port + "link_layer":                      "Ethernet",
		port + "state":                           "4: ACTIVE",
		port + "gids/0":                          "fe80:0000:0000:0000:4ebb:47ff:fe00:0001",
		port + "gid_attrs/types/0":               "IB/RoCE v1",
		port + "gid_attrs/ndevs/0":               FabricInterface,
	}
	if h.fabric.IsValid() {
		v4 := h.fabric.As4()
		files[port+"gids/"+index] = fmt.Sprintf("0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x", v4[0], v4[1], v4[2], v4[3])
		files[port+"gid_attrs/types/"+index] = "RoCE v2"
		files[port+"gid_attrs/ndevs/"+index] = FabricInterface
	}
	for name, text := range files {
		if err := replaceFile(h.factsRoot()+name, text); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a file so that a reader sees the old or the new one.
func replaceFile(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// reshape is change for what publish writes.
func (h *Host) reshape(alter func()) {
	h.fleet.t.Helper()
	var err error
	h.change(func() {
		alter()
		err = h.publish()
	})
	if err != nil {
		h.fleet.t.Fatalf("hosttest: write the facts of %s: %v", h.name, err)
	}
}

// gpuUUID is the same at every look.
func (h *Host) gpuUUID(index int) string {
	digest := sha256.Sum256([]byte(h.name + strconv.Itoa(index)))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", digest[0:4], digest[4:6], digest[6:8], digest[8:10], digest[10:16])
}

func (h *Host) interfaces() ([]agent.Interface, error) {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	list := []agent.Interface{
		{Name: "lo", Up: true, MTU: 65536, Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		{
			Name: ManagementInterface, Up: true, MTU: 1500, SpeedMbps: 10_000, MAC: h.mac(0),
			Addresses: []netip.Prefix{netip.PrefixFrom(h.management, 24)},
		},
		{Name: FabricInterface, Up: true, MTU: h.mtu, SpeedMbps: 200_000, PhysicalPort: "p0", MAC: h.mac(1), Addresses: []netip.Prefix{}},
	}
	if h.fabric.IsValid() {
		list[2].Addresses = append(list[2].Addresses, netip.PrefixFrom(h.fabric, 24))
	}
	return list, nil
}

func (h *Host) nvidiaSMI(context.Context) (string, error) {
	h.ssh.facts.Add(1)
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	if h.gpuError != "" {
		return "", errors.New(h.gpuError)
	}
	if h.gpus == 0 {
		return "No devices were found\n", errors.New("exit status 6")
	}
	var list strings.Builder
	for i := range h.gpus {
		fmt.Fprintf(&list, "%d, %s, %s, %s\n", i, gpuName, h.gpuUUID(i), driverVersion)
	}
	return list.String(), nil
}

// listeners are the listening ports as sockets of root, as those of containers are.
func (h *Host) listeners() ([]agent.Listener, error) {
	ports, err := h.listeningPorts()
	list := make([]agent.Listener, 0, len(ports))
	for _, port := range ports {
		list = append(list, agent.Listener{Port: port})
	}
	return list, err
}

func (h *Host) listeningPorts() ([]int, error) {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	h.fleet.settle()
	return h.listening(), nil
}
