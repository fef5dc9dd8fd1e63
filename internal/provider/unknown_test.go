package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/spark-stack/terraform-provider-spark/internal/provider/shared"
)

// object makes a value of a schema: null where values has nothing.
func object(t *testing.T, schema *tfprotov6.Schema, values map[string]tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	kind, ok := schema.ValueType().(tftypes.Object)
	if !ok {
		t.Fatalf("the schema is a %T", schema.ValueType())
	}
	all := map[string]tftypes.Value{}
	for name, attribute := range kind.AttributeTypes {
		all[name] = tftypes.NewValue(attribute, nil)
	}
	for name, value := range values {
		all[name] = value
	}
	made, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, all))
	if err != nil {
		t.Fatal(err)
	}
	return &made
}

// A provider block that waits for another resource lets new resources be planned; a refresh names the
// attribute that it waits for, and so does an import that has to look at a host.
func TestUnknownProviderValue(t *testing.T) {
	ctx := t.Context()
	for _, setting := range shared.Settings() {
		if setting.Env == "" {
			continue
		}
		name, kind := setting.Name, setting.Type().TerraformType(ctx)
		t.Run(name, func(t *testing.T) {
			server, err := providerserver.NewProtocol6WithError(New("test")())()
			if err != nil {
				t.Fatal(err)
			}
			schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
			if err != nil {
				t.Fatal(err)
			}
			config := object(t, schemas.Provider, map[string]tftypes.Value{name: tftypes.NewValue(kind, tftypes.UnknownValue)})
			configured, err := server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: config})
			if err != nil || len(configured.Diagnostics) > 0 {
				t.Fatal(err, configured)
			}
			node := schemas.ResourceSchemas["spark_node"]
			host := object(t, node, map[string]tftypes.Value{"host": tftypes.NewValue(tftypes.String, "node.invalid")})
			null, err := tfprotov6.NewDynamicValue(node.ValueType(), tftypes.NewValue(node.ValueType(), nil))
			if err != nil {
				t.Fatal(err)
			}
			planned, err := server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
				TypeName: "spark_node", Config: host, ProposedNewState: host, PriorState: &null,
			})
			if err != nil || len(planned.Diagnostics) > 0 {
				t.Error("a new node is not planned:", err, planned)
			}
			for kind, schema := range schemas.ResourceSchemas {
				read, err := server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: kind, CurrentState: object(t, schema, nil)})
				if err != nil || len(read.Diagnostics) != 1 || !strings.Contains(read.Diagnostics[0].Summary, "the provider's "+name+" is not known yet") {
					t.Errorf("%s: %v, %v", kind, err, read)
				}
			}
			imported, err := server.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: "ray_cluster", ID: "spark@node.invalid"})
			if err != nil || len(imported.Diagnostics) != 1 || !strings.Contains(imported.Diagnostics[0].Summary, "the provider's "+name+" is not known yet") {
				t.Errorf("import of a cluster: %v, %v", err, imported)
			}
		})
	}
}
