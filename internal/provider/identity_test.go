package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Terraform asks for identities from 1.12 on: a node's is its host, and enough to import it.
func TestImportByIdentity(t *testing.T) {
	ctx := t.Context()
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil || len(schemas.Diagnostics) > 0 {
		t.Fatal(err, schemas)
	}
	schema := schemas.IdentitySchemas["spark_node"]
	if schema == nil || len(schema.IdentityAttributes) != 1 || !schema.IdentityAttributes[0].RequiredForImport {
		t.Fatalf("identity of a node: %+v", schema)
	}
	kind := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"host": tftypes.String}}
	identity, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, map[string]tftypes.Value{"host": text("fd00::30")}))
	if err != nil {
		t.Fatal(err)
	}
	imported, err := server.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{
		TypeName: "spark_node", Identity: &tfprotov6.ResourceIdentityData{IdentityData: &identity},
	})
	if err != nil || len(imported.Diagnostics) > 0 || len(imported.ImportedResources) != 1 {
		t.Fatal(err, imported)
	}
	all, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	value, err := imported.ImportedResources[0].State.Unmarshal(all.ResourceSchemas["spark_node"].ValueType())
	if err != nil {
		t.Fatal(err)
	}
	var attributes map[string]tftypes.Value
	var host string
	if err := value.As(&attributes); err != nil {
		t.Fatal(err)
	}
	if err := attributes["host"].As(&host); err != nil || host != "fd00::30" || !attributes["user"].IsNull() || !attributes["name"].IsNull() {
		t.Errorf("imported %v, %v", value, err)
	}
}
