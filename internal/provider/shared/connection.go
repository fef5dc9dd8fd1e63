package shared

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

// Connection is how a node is reached, as attributes: the settings of [Settings] that a node can have.
// Models embed it.
type Connection struct {
	User            types.String `tfsdk:"user"`
	Port            types.Int64  `tfsdk:"port"`
	PrivateKeyFile  types.String `tfsdk:"private_key_file"`
	CertificateFile types.String `tfsdk:"certificate_file"`
	HostKey         types.String `tfsdk:"host_key"`
	HostKeyPolicy   types.String `tfsdk:"host_key_policy"`
	ProxyJump       types.List   `tfsdk:"proxy_jump"`
	Transport       types.String `tfsdk:"transport"`
	DockerSocket    types.String `tfsdk:"docker_socket"`
	AgentDir        types.String `tfsdk:"agent_dir"`
	Unreachable     types.String `tfsdk:"unreachable"`
}

// To is the connection to a host in the words of the fleet.
func (c Connection) To(host string) fleet.Connection {
	jumps, _ := StringsOf(c.ProxyJump) // nobody connects while something is unknown
	return fleet.Connection{
		Host: host, Port: int(c.Port.ValueInt64()), User: c.User.ValueString(), HostKey: c.HostKey.ValueString(),
		Socket: c.DockerSocket.ValueString(), PrivateKeyFile: c.PrivateKeyFile.ValueString(), CertificateFile: c.CertificateFile.ValueString(),
		ProxyJump: jumps, HostKeyPolicy: c.HostKeyPolicy.ValueString(), Transport: c.Transport.ValueString(), AgentDir: c.AgentDir.ValueString(),
	}
}

// Unknown says that a part of it comes from a resource that is still to be applied.
func (c Connection) Unknown() bool {
	for _, value := range []attr.Value{c.User, c.Port, c.PrivateKeyFile, c.CertificateFile, c.HostKey, c.HostKeyPolicy,
		c.Transport, c.DockerSocket, c.AgentDir, c.Unreachable} {
		if value.IsUnknown() {
			return true
		}
	}
	_, known := StringsOf(c.ProxyJump)
	return !known
}

// Keeps says whether a refresh goes on without the node when it does not answer.
func (c Connection) Keeps(data *Data) bool {
	if c.Unreachable.IsNull() {
		return data.KeepUnreachable
	}
	return c.Unreachable.ValueString() == unreachableKeep
}

// ConnectionTypes are the types of Connection's attributes by name.
func ConnectionTypes() map[string]attr.Type {
	out := map[string]attr.Type{}
	for _, setting := range Settings() {
		if setting.Node {
			out[setting.Name] = setting.Type()
		}
	}
	return out
}

// ConnectionOf takes Connection's attributes of an object; those that it lacks are null.
func ConnectionOf(object types.Object) map[string]attr.Value {
	out, given := map[string]attr.Value{}, object.Attributes()
	for name, kind := range ConnectionTypes() {
		value, found := given[name]
		if !found {
			value = nullOf(kind)
		}
		out[name] = value
	}
	return out
}

func nullOf(kind attr.Type) attr.Value {
	switch kind {
	case types.Int64Type:
		return types.Int64Null()
	case types.StringType:
		return types.StringNull()
	default:
		return types.ListNull(types.StringType)
	}
}

// Type is the setting's type as an attribute.
func (s Setting) Type() attr.Type {
	switch s.Kind {
	case Number:
		return types.Int64Type
	case List:
		return types.ListType{ElemType: types.StringType}
	default:
		return types.StringType
	}
}

// ValidateString implements validator.String.
func (s Setting) ValidateString(_ context.Context, request validator.StringRequest, response *validator.StringResponse) {
	if !request.ConfigValue.IsNull() && !request.ConfigValue.IsUnknown() {
		s.judge(request.ConfigValue.ValueString(), request.Path, &response.Diagnostics)
	}
}

// ValidateInt64 implements validator.Int64.
func (s Setting) ValidateInt64(_ context.Context, request validator.Int64Request, response *validator.Int64Response) {
	if !request.ConfigValue.IsNull() && !request.ConfigValue.IsUnknown() {
		s.judge(strconv.FormatInt(request.ConfigValue.ValueInt64(), 10), request.Path, &response.Diagnostics)
	}
}

func (s Setting) judge(word string, at path.Path, diags *diag.Diagnostics) {
	if problem := s.Problem(word); problem != "" {
		diags.AddAttributeError(at, fmt.Sprintf("Invalid %s", at), problem)
	}
}

// Description implements the validators' description.
func (s Setting) Description(context.Context) string { return "a valid " + s.Name }

// MarkdownDescription implements the validators' description.
func (s Setting) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

func (s Setting) listValidators() []validator.List {
	return []validator.List{listvalidator.SizeAtLeast(1), listvalidator.NoNullValues(), listvalidator.ValueStringsAre(s)}
}

// Connections are those of a resource's nodes, by host.
type Connections map[string]Connection

// Keep says whether a refresh goes on with the last known values after an error: a host did not answer,
// and it may. Behind a jump host that does not answer, all nodes must say so.
func (c Connections) Keep(data *Data, err error) bool {
	var silent *sshx.Error
	if !Unreachable(err) || !errors.As(err, &silent) {
		return false
	}
	if one, ours := c[silent.Host]; ours {
		return one.Keeps(data)
	}
	for _, one := range c {
		if !one.Keeps(data) {
			return false
		}
	}
	return len(c) > 0
}
