package shared

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
)

// The struct, the table and the fleet must have the same settings of a node.
func TestConnectionIsWhatSettingsSay(t *testing.T) {
	tags := []string{}
	for field := range reflect.TypeFor[Connection]().Fields() {
		tags = append(tags, field.Tag.Get("tfsdk"))
	}
	slices.Sort(tags)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(ConnectionTypes())), tags); diff != "" {
		t.Errorf("settings of a node (-table +struct):\n%s", diff)
	}
	full := reflect.ValueOf(Connection{
		User: types.StringValue("u"), Port: types.Int64Value(1), PrivateKeyFile: types.StringValue("k"), CertificateFile: types.StringValue("c"),
		HostKey: types.StringValue("h"), HostKeyPolicy: types.StringValue("p"), ProxyJump: Strings([]string{"j"}), Transport: types.StringValue("t"),
		DockerSocket: types.StringValue("s"), AgentDir: types.StringValue("a"),
	}.To("host"))
	for field := range reflect.TypeFor[fleet.Connection]().Fields() {
		if full.FieldByName(field.Name).IsZero() {
			t.Errorf("no attribute of a node sets %s", field.Name)
		}
	}
}

func TestUnknownConnection(t *testing.T) {
	kind := reflect.TypeFor[Connection]()
	for i := range kind.NumField() {
		connection := Connection{ProxyJump: types.ListNull(types.StringType)}
		if connection.Unknown() {
			t.Fatal("null is known")
		}
		var unknown any = types.StringUnknown()
		switch kind.Field(i).Type {
		case reflect.TypeFor[types.Int64]():
			unknown = types.Int64Unknown()
		case reflect.TypeFor[types.List]():
			unknown = types.ListUnknown(types.StringType)
		}
		reflect.ValueOf(&connection).Elem().Field(i).Set(reflect.ValueOf(unknown))
		if !connection.Unknown() {
			t.Errorf("an unknown %s is not noticed", kind.Field(i).Name)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]Address{
		"10.1.230.180":             {Host: "10.1.230.180"},
		"aurora-1.example":         {Host: "aurora-1.example"},
		"ops@aurora-1:2222":        {User: "ops", Host: "aurora-1", Port: 2222},
		"aurora-1:22":              {Host: "aurora-1", Port: 22},
		"fd00::1":                  {Host: "fd00::1"},
		"[fd00::1]":                {Host: "fd00::1"},
		"ops@[fd00::1]:2222":       {User: "ops", Host: "fd00::1", Port: 2222},
		"[fe80::1%enP7s7]:22":      {Host: "fe80::1%enP7s7", Port: 22},
		"first.last@corp@aurora-1": {User: "first.last@corp", Host: "aurora-1"},
		"none":                     {Host: "none"},
	} {
		if got, err := ParseAddress(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "@aurora-1", "ops@", "aurora-1:", "aurora-1:0", "aurora-1:65536", "aurora-1:ssh", ":22", "-oProxyCommand=x", "-x@aurora-1",
		"two words", "a:b:c", "[fd00::1", "fd00::1]", "[fd00::1]22", "[]:22", "ssh://aurora-1", "a/b"} {
		if got, err := ParseAddress(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
