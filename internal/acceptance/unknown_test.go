package acceptance

import (
	"fmt"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

// unknownValues are resources whose output is unknown until they are made, or made again.
const unknownValues = `
resource "terraform_data" "host" {
  input            = "$b.host"
  triggers_replace = %[1]s
}
resource "terraform_data" "values" {
  input = {
    address = "$b.fabric", image = "$image", path = "$model_path", name = "pair", port = 8001, env = "INFO", arg = "--enforce-eager"
  }
  triggers_replace = %[1]s
}
`

// Values that only apply will know are no error of the plan, when a configuration is new and when it
// is not, and what comes of them is as if they had been written down.
func TestUnknownValues(t *testing.T) {
	t.Parallel()
	w := newMemory(t, 2)
	values := config{
		node:  map[int]string{b: "fabric_address = terraform_data.values.output.address"},
		image: "terraform_data.values.output.image", model: "{ path = terraform_data.values.output.path }",
		name:       "terraform_data.values.output.name",
		cluster:    `env = { NCCL_DEBUG = terraform_data.values.output.env }`,
		deployment: "port = terraform_data.values.output.port\n  args = [terraform_data.values.output.arg]",
	}
	host := config{host: map[int]string{b: "terraform_data.host.output"}}
	for name, one := range map[string]config{"host": host, "values": values} {
		t.Run(name, func(t *testing.T) {
			ws := clitest.New(t, "", w.env())
			for _, trigger := range []string{"1", "2"} {
				one.before = fmt.Sprintf(unknownValues, trigger)
				ws.Config(one.in(w))
				ws.Drifted()
				ws.ApplyPlanned()
				ws.Empty()
			}
			ws.Destroy()
		})
	}
}
