package provider

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// block is a provider block with some attributes; the others are null.
func block(t *testing.T, values map[string]tftypes.Value) tfsdk.Config {
	t.Helper()
	var made provider.SchemaResponse
	New("test")().Schema(t.Context(), provider.SchemaRequest{}, &made)
	kind, ok := made.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
	if !ok {
		t.Fatal("the schema is no object")
	}
	all := map[string]tftypes.Value{}
	for name, attribute := range kind.AttributeTypes {
		all[name] = tftypes.NewValue(attribute, nil)
	}
	for name, value := range values {
		all[name] = value
	}
	return tfsdk.Config{Schema: made.Schema, Raw: tftypes.NewValue(kind, all)}
}

func text(value string) tftypes.Value { return tftypes.NewValue(tftypes.String, value) }

func texts(values ...string) tftypes.Value {
	all := []tftypes.Value{}
	for _, value := range values {
		all = append(all, text(value))
	}
	return tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, all)
}

// everything is set by the block or the environment; the two must mean the same.
var everything = shared.Defaults{KeepUnreachable: true, Defaults: fleet.Defaults{
	User: "aurora", Port: 2222, PrivateKeyFile: "~/.ssh/spark", Passphrase: "open", CertificateFile: "~/.ssh/spark-cert.pub",
	KnownHostsFiles: []string{"hosts"}, HostKeyPolicy: "accept-new", ConfigFile: "none", ProxyJump: []string{"ops@gate:22", "inner"},
	Socket: "/run/user/1000/docker.sock", AgentDir: "~/bin",
}}

func TestSettings(t *testing.T) {
	written := map[string]tftypes.Value{
		"user": text("aurora"), "port": tftypes.NewValue(tftypes.Number, 2222), "private_key_file": text("~/.ssh/spark"), "passphrase": text("open"),
		"certificate_file": text("~/.ssh/spark-cert.pub"), "known_hosts_file": text("hosts"), "host_key_policy": text("accept-new"),
		"ssh_config_file": text("none"), "proxy_jump": texts("ops@gate:22", "inner"), "docker_socket": text("/run/user/1000/docker.sock"),
		"agent_dir": text("~/bin"), "unreachable": text("keep"),
	}
	environment := map[string]string{
		"SPARK_SSH_USER": "aurora", "SPARK_SSH_PORT": "2222", "SPARK_SSH_PRIVATE_KEY_FILE": "~/.ssh/spark", "SPARK_SSH_PASSPHRASE": "open",
		"SPARK_SSH_CERTIFICATE_FILE": "~/.ssh/spark-cert.pub", "SPARK_SSH_KNOWN_HOSTS_FILE": "hosts", "SPARK_SSH_HOST_KEY_POLICY": "accept-new",
		"SPARK_SSH_CONFIG_FILE": "none", "SPARK_SSH_PROXY_JUMP": "ops@gate:22,inner", "SPARK_DOCKER_SOCKET": "/run/user/1000/docker.sock",
		"SPARK_AGENT_DIR": "~/bin", "SPARK_UNREACHABLE": "keep",
	}
	inline := everything
	inline.PrivateKeyFile, inline.PrivateKey = "", "the key"
	withKey := map[string]tftypes.Value{"private_key": text("the key")}
	for name, one := range map[string]struct {
		written map[string]tftypes.Value
		env     map[string]string
		want    shared.Defaults
	}{
		"nothing":                               {},
		"all in the block":                      {written: written, want: everything},
		"all in the environment":                {env: environment, want: everything},
		"the block wins":                        {written: map[string]tftypes.Value{"user": text("ops")}, env: map[string]string{"SPARK_SSH_USER": "aurora"}, want: shared.Defaults{Defaults: fleet.Defaults{User: "ops"}}},
		"a key in the block, a file beside":     {written: withKey, env: environment, want: inline},
		"a file in the block, a key beside":     {written: written, env: map[string]string{"SPARK_SSH_PRIVATE_KEY": "another"}, want: everything},
		"an empty variable is as good as none":  {env: map[string]string{"SPARK_SSH_PORT": "", "SPARK_UNREACHABLE": ""}},
		"the key itself in the environment too": {env: map[string]string{"SPARK_SSH_PRIVATE_KEY": "the key"}, want: shared.Defaults{Defaults: fleet.Defaults{PrivateKey: "the key"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range one.env {
				t.Setenv(variable, value)
			}
			var diags diag.Diagnostics
			got, waits := settingsOf(t.Context(), block(t, one.written), &diags)
			if diags.HasError() || waits != "" {
				t.Fatal(diags, waits)
			}
			if diff := cmp.Diff(one.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A bad variable is an error that names it; what is secret is not repeated.
func TestBadEnvironment(t *testing.T) {
	for variable, value := range map[string]string{
		"SPARK_SSH_USER": "two words", "SPARK_SSH_PORT": "0", "SPARK_SSH_HOST_KEY_POLICY": "maybe", "SPARK_SSH_PROXY_JUMP": "gate,:22",
		"SPARK_DOCKER_SOCKET": "docker.sock", "SPARK_AGENT_DIR": "bin", "SPARK_UNREACHABLE": "forget",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			var diags diag.Diagnostics
			if _, _ = settingsOf(t.Context(), block(t, nil), &diags); diags.ErrorsCount() != 1 || !strings.Contains(diags[0].Summary(), variable) {
				t.Error(diags)
			}
		})
	}
}
