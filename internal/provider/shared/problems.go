package shared

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/spark-stack/terraform-provider-spark/internal/node"
)

// problem is what each domain package says of an attribute that cannot stay as it is.
type problem struct{ Path, Summary, Detail string }

// Report turns a domain's problems into errors on their attributes. outcome is added to each: what was
// not changed because of it; empty where that goes without saying.
func Report[P ~struct{ Path, Summary, Detail string }](diags *diag.Diagnostics, problems []P, outcome string) {
	for _, one := range problems {
		found := problem(one)
		diags.AddAttributeError(path.Root(found.Path), found.Summary, found.Detail+outcome)
	}
}

// Found reports what gets in the way on the nodes, before anything is changed: what cannot work as an
// error, what hurts as a warning.
func Found(diags *diag.Diagnostics, at path.Path, finding node.Finding) {
	detail := finding.Cause + "\n\n" + finding.Fix
	if finding.Severity == node.Error {
		diags.AddAttributeError(at, finding.Summary, detail+"\n\nNothing was changed.")
	} else {
		diags.AddAttributeWarning(at, finding.Summary, detail)
	}
}
