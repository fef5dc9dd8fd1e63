package hosttest

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"golang.org/x/crypto/ssh"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

func portText(f *Fleet) string { return strconv.Itoa(f.Port()) }

func hostConfig() container.HostConfig {
	return container.HostConfig{
		NetworkMode: "host", IpcMode: "shareable",
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/models", Target: "/models", ReadOnly: true}},
		Resources: container.Resources{
			DeviceRequests: []container.DeviceRequest{{Count: -1, Capabilities: [][]string{{"gpu"}}}},
		},
	}
}

func headSpec(f *Fleet) Spec {
	return Spec{
		Image: DefaultImage, Host: hostConfig(),
		Command: []string{"ray", "start", "--block", "--head", "--node-ip-address=" + f.Host(0).FabricAddress(), "--port=6379", "--num-gpus=1"},
	}
}

func workerSpec(f *Fleet, i int) Spec {
	return Spec{
		Image: DefaultImage, Host: hostConfig(),
		Command: []string{"ray", "start", "--block", "--address=127.0.100.11:6379", "--node-ip-address=" + f.Host(i).FabricAddress(), "--num-gpus=1"},
	}
}

func serveSpec(f *Fleet) Spec {
	host := hostConfig()
	host.IpcMode, host.PidMode = "container:ray-pair", "container:ray-pair"
	return Spec{
		Image: DefaultImage, Host: host,
		Env:     map[string]string{"RAY_ADDRESS": "127.0.100.11:6379", "VLLM_HOST_IP": f.Host(0).FabricAddress()},
		Command: []string{"vllm", "serve", "/models/tiny", "--tensor-parallel-size", "2", "--served-model-name", "tiny"},
	}
}

func startCluster(t *testing.T, f *Fleet) {
	t.Helper()
	f.Host(0).RunContainer("ray-pair", headSpec(f))
	for i := 1; i < len(f.Hosts()); i++ {
		f.Host(i).RunContainer("ray-pair", workerSpec(f, i))
	}
}

// ask makes a raw call to the GCS through a host's connection.
func ask(t *testing.T, connection *ssh.Client, method string, pairs ...string) ([]byte, error) {
	t.Helper()
	gcs, err := grpc.NewClient("passthrough:///127.0.100.11:6379",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(_ context.Context, address string) (net.Conn, error) {
			return connection.Dial("tcp", address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gcs.Close() }()
	ctx := metadata.AppendToOutgoingContext(t.Context(), pairs...)
	request, reply := []byte{}, []byte{}
	err = gcs.Invoke(ctx, "/ray.rpc."+method, &request, &reply, grpc.ForceCodec(rawCodec{}))
	return reply, err
}

// fields returns the values of one length-delimited field.
func fields(text []byte, number protowire.Number) [][]byte {
	var values [][]byte
	for len(text) > 0 {
		found, kind, n := protowire.ConsumeTag(text)
		text = text[n:]
		size := protowire.ConsumeFieldValue(found, kind, text)
		if found == number && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(text)
			values = append(values, value)
		}
		text = text[size:]
	}
	return values
}

// addresses are those of the nodes in the table that are alive.
func addresses(t *testing.T, connection *ssh.Client) []string {
	t.Helper()
	reply, err := ask(t, connection, "NodeInfoGcsService/GetAllNodeInfo")
	if err != nil {
		return []string{status.Code(err).String()}
	}
	var alive []string
	for _, node := range fields(reply, 2) {
		if len(fields(node, 29)) == 0 {
			alive = append(alive, string(fields(node, 2)[0]))
		}
	}
	return alive
}

func waitNodes(t *testing.T, connection *ssh.Client, want ...string) {
	t.Helper()
	eventually(t, "nodes "+strings.Join(want, " "), func() bool { return cmp.Equal(want, addresses(t, connection)) })
}

func waitHealthy(t *testing.T, connection *ssh.Client) {
	t.Helper()
	eventually(t, "healthy", func() bool {
		code, _, err := get(t, connection, http.MethodGet, "http://127.0.0.1:8000/health", "")
		return err == nil && code == http.StatusOK
	})
}

func TestCluster(t *testing.T) {
	f := NewFleet(t, 2)
	startCluster(t, f)
	c := mustDial(t, f, 1) // Any host reaches the head.
	waitNodes(t, c, "127.0.100.11", "127.0.100.12")

	f.Host(1).KillContainer("ray-pair")
	waitNodes(t, c, "127.0.100.11")
	f.Host(1).StartContainer("ray-pair")
	waitNodes(t, c, "127.0.100.11", "127.0.100.12")

	f.Host(0).RemoveContainer("ray-pair")
	waitNodes(t, c, "Unavailable")
	eventually(t, "the worker exits", func() bool {
		worker, _ := f.Host(1).Container("ray-pair")
		return worker.Status == "exited" && worker.ExitCode == 1
	})
}

// The famous mistake: the head registers by its management address.
func TestHeadWithoutAddress(t *testing.T) {
	f := NewFleet(t, 2)
	f.WriteModel(0, "/models/tiny")
	f.WriteModel(1, "/models/tiny")
	startCluster(t, f)
	c := mustDial(t, f, 0)
	waitNodes(t, c, "127.0.100.11", "127.0.100.12")
	f.Host(0).RerunContainer("ray-pair", func(spec *Spec) { spec.Drop("--node-ip-address") })
	eventually(t, "the worker exits", func() bool {
		worker, _ := f.Host(1).Container("ray-pair")
		return worker.Status == "exited"
	})
	f.Host(1).StartContainer("ray-pair")
	waitNodes(t, c, "127.0.0.11", "127.0.100.12")

	f.Host(0).RunContainer("vllm-pair", serveSpec(f))
	eventually(t, "the server gives up", func() bool {
		server, _ := f.Host(0).Container("vllm-pair")
		return server.Status == "exited" && server.ExitCode == 1 &&
			strings.Contains(server.Logs, "No available node types can fulfill resource request {'node:127.0.100.11': 0.001, 'GPU': 1.0}")
	})
}

func TestAddressMoves(t *testing.T) {
	timing := DefaultTiming()
	timing.AddressLoss = 50 * time.Millisecond
	f := NewFleet(t, 2, WithTiming(timing))
	startCluster(t, f)
	c := mustDial(t, f, 0)
	waitNodes(t, c, "127.0.100.11", "127.0.100.12")
	f.Host(1).SetFabricAddress("127.0.100.77")
	waitNodes(t, c, "127.0.100.11")
}

func TestToken(t *testing.T) {
	f := NewFleet(t, 2)
	head, worker := headSpec(f), workerSpec(f, 1)
	head.Env = map[string]string{"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "secret"}
	f.Host(0).RunContainer("ray-pair", head)
	f.Host(1).RunContainer("ray-pair", worker)
	c := mustDial(t, f, 0)
	eventually(t, "the stranger exits", func() bool {
		worker, _ := f.Host(1).Container("ray-pair")
		return worker.Status == "exited" && strings.Contains(worker.Logs, "InvalidAuthToken")
	})
	if _, err := ask(t, c, "NodeInfoGcsService/GetAllNodeInfo"); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: %v", err)
	}
	if _, err := ask(t, c, "NodeInfoGcsService/GetAllNodeInfo", "authorization", "Bearer secret"); err != nil {
		t.Errorf("with the token: %v", err)
	}
}

func TestServe(t *testing.T) {
	f := NewFleet(t, 2)
	f.WriteModel(0, "/models/tiny")
	f.WriteModel(1, "/models/tiny")
	startCluster(t, f)
	c := mustDial(t, f, 0)
	waitNodes(t, c, "127.0.100.11", "127.0.100.12")
	f.Host(0).RunContainer("vllm-pair", serveSpec(f))
	waitHealthy(t, c)
	code, text, err := get(t, c, http.MethodGet, "http://127.0.0.1:8000/v1/models", "")
	if err != nil || code != http.StatusOK || !strings.Contains(text, `"id":"tiny"`) {
		t.Errorf("models: %d, %s, %v", code, text, err)
	}
	code, text, err = get(t, c, http.MethodPost, "http://127.0.0.1:8000/v1/completions", `{"model": "tiny", "prompt": "The sky is"}`)
	if err != nil || code != http.StatusOK || !strings.Contains(text, "blue and clear") {
		t.Errorf("completion: %d, %s, %v", code, text, err)
	}
	reply, err := ask(t, c, "PlacementGroupInfoGcsService/GetAllPlacementGroup")
	if err != nil || len(fields(reply, 2)) != 1 || len(fields(fields(reply, 2)[0], 3)) != 2 {
		t.Errorf("placement groups: %x, %v", reply, err)
	}
	reply, err = ask(t, c, "autoscaler.AutoscalerStateService/GetClusterStatus")
	if err != nil || len(fields(fields(reply, 2)[0], 3)) != 2 || strings.Contains(string(fields(fields(fields(reply, 2)[0], 3)[0], 4)[0]), "GPU") {
		t.Errorf("cluster status: %q, %v", reply, err)
	}
	if entries := f.Journal(); len(entries) != 0 {
		t.Errorf("journal after work by hand: %v", entries)
	}

	f.Host(1).KillContainer("ray-pair")
	eventually(t, "the server dies with a rank", func() bool {
		server, _ := f.Host(0).Container("vllm-pair")
		return server.Status == "exited" && strings.Contains(server.Logs, "EngineDeadError")
	})
	reply, err = ask(t, c, "PlacementGroupInfoGcsService/GetAllPlacementGroup")
	if err != nil || len(reply) != 0 {
		t.Errorf("placement groups afterwards: %x, %v", reply, err)
	}
}

func TestInstantTiming(t *testing.T) {
	f := NewFleet(t, 2, WithTiming(InstantTiming()))
	f.WriteModel(0, "/models/tiny")
	f.WriteModel(1, "/models/tiny")
	startCluster(t, f)
	c := mustDial(t, f, 1)
	if got := addresses(t, c); !cmp.Equal(got, []string{"127.0.100.11", "127.0.100.12"}) {
		t.Errorf("at the first look: %v", got)
	}
	f.Host(0).RunContainer("vllm-pair", serveSpec(f))
	if code, _, err := get(t, c, http.MethodGet, "http://127.0.0.11:8000/health", ""); err != nil || code != http.StatusOK {
		t.Errorf("health at the first look: %d, %v", code, err)
	}
}

func TestServeFailures(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(*Fleet)
		log  string
	}{
		"port":      {func(f *Fleet) { f.Host(0).TakePort(8000) }, "Address already in use"},
		"missing":   {func(f *Fleet) { f.Host(1).DeleteFile("/models/tiny/" + ShardName(3)) }, "No such file or directory: " + ShardName(3)},
		"truncated": {func(f *Fleet) { f.Host(1).TruncateFile("/models/tiny/"+ShardName(3), 500) }, "MetadataIncompleteBuffer"},
		"no model":  {func(f *Fleet) { f.Host(1).DeleteFile("/models/tiny") }, "Can't load the configuration"},
		"GPU taken": {func(f *Fleet) { f.Host(0).LeakPlacementGroup() }, "Waiting for creating a placement group"},
		"prepared":  {func(f *Fleet) { f.Host(0).FailServe("torch.OutOfMemoryError: CUDA out of memory") }, "CUDA out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := NewFleet(t, 2)
			f.WriteModel(0, "/models/tiny")
			f.WriteModel(1, "/models/tiny")
			startCluster(t, f)
			waitNodes(t, mustDial(t, f, 0), "127.0.100.11", "127.0.100.12")
			test.harm(f)
			f.Host(0).RunContainer("vllm-pair", serveSpec(f))
			eventually(t, test.log, func() bool {
				server, _ := f.Host(0).Container("vllm-pair")
				return server.Status == "exited" && server.ExitCode == 1 && strings.Contains(server.Logs, test.log)
			})
		})
	}
}

func TestReboot(t *testing.T) {
	f := NewFleet(t, 1)
	f.Host(0).RunContainer("ray-pair", headSpec(f))
	c := mustDial(t, f, 0)
	waitNodes(t, c, "127.0.100.11")
	f.Host(0).Reboot()
	if err := c.Wait(); err == nil {
		t.Error("the connection survived")
	}
	if head, _ := f.Host(0).Container("ray-pair"); head.Status != "exited" {
		t.Errorf("after a reboot: %+v", head)
	}
	time.Sleep(10 * time.Millisecond)
	if got := addresses(t, mustDial(t, f, 0)); got[0] != "Unavailable" {
		t.Errorf("the GCS answers: %v", got)
	}
}
