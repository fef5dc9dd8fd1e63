package sparknode

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/node"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// source is the data source. Lists are nil, and so null, of a machine that did not answer.
type source struct {
	shared.Connection
	Host              types.String   `tfsdk:"host"`
	Timeouts          timeouts.Value `tfsdk:"timeouts"`
	ID                types.String   `tfsdk:"id"`
	Reachable         types.Bool     `tfsdk:"reachable"`
	Name              types.String   `tfsdk:"name"`
	Machine           types.String   `tfsdk:"machine"`
	OS                types.String   `tfsdk:"os"`
	Kernel            types.String   `tfsdk:"kernel"`
	Architecture      types.String   `tfsdk:"architecture"`
	Login             types.String   `tfsdk:"login"`
	Groups            []string       `tfsdk:"groups"`
	ManagementAddress types.String   `tfsdk:"management_address"`
	FabricAddress     types.String   `tfsdk:"fabric_address"`
	Driver            types.String   `tfsdk:"driver"`
	CUDA              types.String   `tfsdk:"cuda"`
	GPUError          types.String   `tfsdk:"gpu_error"`
	GPUs              []gpu          `tfsdk:"gpus"`
	Memory            *memory        `tfsdk:"memory"`
	Interfaces        []netDevice    `tfsdk:"interfaces"`
	DefaultInterface  types.String   `tfsdk:"default_interface"`
	RDMA              []rdmaDevice   `tfsdk:"rdma_devices"`
	FileSystems       []fileSystem   `tfsdk:"file_systems"`
	ListeningPorts    []int64        `tfsdk:"listening_ports"`
	Findings          []string       `tfsdk:"findings"`
	Unread            []string       `tfsdk:"unread"`
}

type gpu struct {
	Index     int64       `tfsdk:"index"`
	Name      string      `tfsdk:"name"`
	UUID      string      `tfsdk:"uuid"`
	MemoryMiB types.Int64 `tfsdk:"memory_mib"`
}

type memory struct {
	Total     int64 `tfsdk:"total"`
	Available int64 `tfsdk:"available"`
	Free      int64 `tfsdk:"free"`
}

type netDevice struct {
	Name      string       `tfsdk:"name"`
	Up        bool         `tfsdk:"up"`
	MTU       int64        `tfsdk:"mtu"`
	SpeedMbps types.Int64  `tfsdk:"speed_mbps"`
	MAC       types.String `tfsdk:"mac"`
	Port      types.String `tfsdk:"port"`
	Addresses []string     `tfsdk:"addresses"`
}

type rdmaDevice struct {
	Name      string       `tfsdk:"name"`
	Interface types.String `tfsdk:"interface"`
	Active    bool         `tfsdk:"active"`
	Firmware  types.String `tfsdk:"firmware"`
	RateGbps  types.Int64  `tfsdk:"rate_gbps"`
}

type fileSystem struct {
	Path string      `tfsdk:"path"`
	Type string      `tfsdk:"type"`
	Free types.Int64 `tfsdk:"free"`
}

// fill writes what the machine says of itself.
func (m *source) fill(facts agent.Facts) {
	seen := node.Observe(facts, m.Host.ValueString(), node.Accepted{})
	m.Reachable = types.BoolValue(true)
	m.Name, m.Machine = types.StringValue(seen.Name), shared.OrNull(seen.Machine.Name)
	m.OS, m.Kernel, m.Architecture = shared.OrNull(facts.OS), shared.OrNull(facts.Kernel), shared.OrNull(facts.Architecture)
	m.Login, m.Groups = shared.OrNull(facts.User.Name), some(facts.User.Groups)
	m.ManagementAddress, m.FabricAddress = shared.OrNull(seen.ManagementAddress), shared.OrNull(seen.FabricAddress)
	m.Driver, m.CUDA, m.GPUError = shared.OrNull(facts.Driver), shared.OrNull(facts.CUDA), shared.OrNull(facts.GPUError)
	m.Memory = &memory{Total: facts.Memory.Total, Available: facts.Memory.Available, Free: facts.Memory.Free}
	m.DefaultInterface = shared.OrNull(facts.DefaultInterface)
	m.Unread = some(facts.Unread)
	m.GPUs, m.Interfaces, m.RDMA, m.FileSystems, m.ListeningPorts, m.Findings = []gpu{}, []netDevice{}, []rdmaDevice{}, []fileSystem{}, []int64{}, []string{}
	for _, one := range facts.GPUs {
		m.GPUs = append(m.GPUs, gpu{Index: int64(one.Index), Name: one.Name, UUID: one.UUID, MemoryMiB: positive(one.MemoryMiB)})
	}
	for _, one := range facts.Interfaces {
		device := netDevice{Name: one.Name, Up: one.Up, MTU: int64(one.MTU), SpeedMbps: positive(int64(one.SpeedMbps)),
			MAC: shared.OrNull(one.MAC), Port: shared.OrNull(one.PhysicalPort), Addresses: []string{}}
		for _, address := range one.Addresses {
			device.Addresses = append(device.Addresses, address.String())
		}
		m.Interfaces = append(m.Interfaces, device)
	}
	for _, one := range facts.RDMA {
		m.RDMA = append(m.RDMA, rdmaDevice{Name: one.Name, Interface: shared.OrNull(one.Interface), Active: one.Active,
			Firmware: shared.OrNull(one.Firmware), RateGbps: positive(int64(one.RateGbps))})
	}
	for _, one := range facts.Mounts {
		system := fileSystem{Path: one.Point, Type: one.Type, Free: types.Int64Null()}
		if one.Free >= 0 {
			system.Free = types.Int64Value(one.Free)
		}
		m.FileSystems = append(m.FileSystems, system)
	}
	for _, port := range facts.Listening {
		m.ListeningPorts = append(m.ListeningPorts, int64(port))
	}
	for _, finding := range node.PreflightOne(node.Member{Host: m.Host.ValueString(), Facts: facts}) {
		m.Findings = append(m.Findings, fmt.Sprintf("%s: %s", finding.Severity, finding.Summary))
	}
}

// positive is null for 0, which stands for "does not tell".
func positive(number int64) types.Int64 {
	if number <= 0 {
		return types.Int64Null()
	}
	return types.Int64Value(number)
}

// some is a list that is not null.
func some(texts []string) []string { return append([]string{}, texts...) }
