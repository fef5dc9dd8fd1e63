package facts

import (
	"errors"
	"net/netip"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

func TestReadSMI(t *testing.T) {
	const uuid = "GPU-3a5c1f0e-8b1d-2f64-9d7e-0c4b6a1e5f22"
	one := []agent.GPU{{Index: 0, Name: "NVIDIA GB10", UUID: uuid}}
	tests := map[string]struct {
		output string
		err    error
		gpus   []agent.GPU
		driver string
		reason string
	}{
		"one": {output: "0, NVIDIA GB10, " + uuid + ", 580.95.05\n", gpus: one, driver: "580.95.05"},
		"two": {
			output: "0, NVIDIA GB10, " + uuid + ", 580.95.05\n1, NVIDIA RTX PRO 6000, GPU-1, 580.95.05\n",
			gpus:   append(one[:1:1], agent.GPU{Index: 1, Name: "NVIDIA RTX PRO 6000", UUID: "GPU-1"}), driver: "580.95.05",
		},
		"not available anywhere": {output: "[N/A], [N/A], [N/A], [N/A]\n", gpus: []agent.GPU{{}}},
		"no index":               {output: "[N/A], NVIDIA GB10, " + uuid + ", [Not Supported]\n", gpus: one},
		"comma in a name": {
			output: "0, NVIDIA GB10, Rev 2, " + uuid + ", 580.95.05\n",
			gpus:   []agent.GPU{{Name: "NVIDIA GB10, Rev 2", UUID: uuid}}, driver: "580.95.05",
		},
		"none": {output: "No devices were found\n", err: errors.New("exit status 6"), gpus: []agent.GPU{}},
		"driver failure": {
			output: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n\n",
			err:    errors.New("exit status 9"), gpus: []agent.GPU{},
			reason: "nvidia-smi: exit status 9: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
		},
		"not installed": {
			err: &exec.Error{Name: "nvidia-smi", Err: exec.ErrNotFound}, gpus: []agent.GPU{},
			reason: "nvidia-smi is not installed: the NVIDIA driver is missing",
		},
		"not a list": {
			output: "Field \"index\" is not a valid field to query.\n", gpus: []agent.GPU{},
			reason: `nvidia-smi answered "Field \"index\" is not a valid field to query." where index, name, UUID and driver were asked`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gpus, driver, reason := ReadSMI(test.output, test.err)
			if diff := cmp.Diff(test.gpus, gpus); diff != "" || driver != test.driver || reason != test.reason {
				t.Errorf("driver %q, reason %q, GPUs:\n%s", driver, reason, diff)
			}
		})
	}
}

func TestParseDefaultRoute(t *testing.T) {
	const head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	tests := map[string]struct{ text, want string }{
		"none":                 {head + "enp1s0f0np0\t00C8A8C0\t00000000\t0001\t0\t0\t101\t00FFFFFF\t0\t0\t0\n", ""},
		"wired":                {head + "enP7s7\t00000000\t01E6010A\t0003\t0\t0\t100\t00000000\t0\t0\t0\nenP7s7\t00E6010A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n", "enP7s7"},
		"Wi-Fi wins by metric": {head + "enP7s7\t00000000\t01E6010A\t0003\t0\t0\t700\t00000000\t0\t0\t0\nwlP9s9\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n", "wlP9s9"},
		"route is down":        {head + "enP7s7\t00000000\t01E6010A\t0002\t0\t0\t100\t00000000\t0\t0\t0\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ParseDefaultRoute(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestParseMeminfo(t *testing.T) {
	got, err := ParseMeminfo("MemTotal:       127601452 kB\nMemFree:         2097152 kB\nMemAvailable:   122683392 kB\nHugePages_Total:       0\n")
	want := agent.Memory{Total: 127601452 << 10, Available: 122683392 << 10, Free: 2 << 30}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := ParseMeminfo("MemFree: 1 kB\n"); err == nil {
		t.Error("no failure for a text without MemTotal")
	}
}

func TestParseOSRelease(t *testing.T) {
	tests := map[string]string{
		"PRETTY_NAME=\"DGX OS 7.3.1\"\nNAME=\"DGX OS\"\n": "DGX OS 7.3.1",
		"# c\nNAME='Debian GNU/Linux'\nID=debian\n":       "Debian GNU/Linux",
		"": "", "NAME=\"": "\"",
	}
	for text, want := range tests {
		if got := ParseOSRelease(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestParseGID(t *testing.T) {
	tests := map[string]netip.Addr{
		"0000:0000:0000:0000:0000:ffff:c0a8:c80c\n": netip.MustParseAddr("192.168.200.12"),
		"fe80:0000:0000:0000:4ebb:47ff:fe2c:1a3b":   {},
		"0000:0000:0000:0000:0000:0000:0000:0000":   {},
		"": {},
	}
	for text, want := range tests {
		if got, found := ParseGID(text); got != want || found != want.IsValid() {
			t.Errorf("%q: got %v, %v", text, got, found)
		}
	}
}

func TestParseSpeed(t *testing.T) {
	for text, want := range map[string]int{"200000\n": 200000, "-1": 0, "": 0, "4294967295": 0} {
		if got := ParseSpeed(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func FuzzParseSMI(f *testing.F) {
	f.Add("0, NVIDIA GB10, GPU-3a5c1f0e, 580.95.05\n")
	f.Add("[N/A], [N/A], [N/A], [N/A]")
	f.Fuzz(func(t *testing.T, text string) {
		gpus, driver, err := ParseSMI(text)
		if err != nil && (gpus != nil || driver != "") {
			t.Errorf("a list beside the failure %v", err)
		}
	})
}

func FuzzParseProc(f *testing.F) {
	f.Add("enP7s7\t00000000\t01E6010A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n")
	f.Add("   0: 0100007F:18EB 00000000:0000 0A 0:0\n")
	f.Add("MemTotal:       127601452 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		ParseDefaultRoute(text)
		ParseOSRelease(text)
		for _, socket := range ParseListening(text) {
			if socket.Port < 0 || socket.Port > 65535 || socket.UID < 0 {
				t.Errorf("socket %+v", socket)
			}
		}
		if memory, err := ParseMeminfo(text); err == nil && (memory.Total <= 0 || memory.Free < 0) {
			t.Errorf("memory %+v", memory)
		}
	})
}

func FuzzParseGID(f *testing.F) {
	f.Add("0000:0000:0000:0000:0000:ffff:c0a8:c80c")
	f.Fuzz(func(t *testing.T, text string) {
		if address, found := ParseGID(text); found && !address.Is4() {
			t.Errorf("%q gives %v", text, address)
		}
	})
}
