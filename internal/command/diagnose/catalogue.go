package diagnose

import (
	"fmt"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/diagnose"
)

// catalogue is all that is known, as Markdown: the guide's tables are made of it.
func catalogue() string {
	var out strings.Builder
	for _, section := range diagnose.Catalogue() {
		fmt.Fprintf(&out, "### %s\n\n| row | message | cause | what to do |\n| --- | --- | --- | --- |\n", section.Title)
		for _, rule := range section.Rules {
			number := ""
			if rule.Row != 0 {
				number = fmt.Sprint(rule.Row)
			}
			fix := rule.Fix
			if rule.Here != "" {
				fix += " With this provider: " + rule.Here
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", number, code(rule.Message), cell(rule.Cause), cell(fix))
		}
		out.WriteString("\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// cell keeps a text within its cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// code marks messages, which are separated by "; ".
func code(text string) string {
	fence := "`"
	if strings.Contains(text, "`") {
		fence = "``"
	}
	parts := strings.Split(text, "; ")
	for i, part := range parts {
		parts[i] = fence + cell(part) + fence
	}
	return strings.Join(parts, ", ")
}
