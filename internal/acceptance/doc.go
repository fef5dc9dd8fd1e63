// Package acceptance tests what a person or a CI job sees: the real Terraform CLI with the built
// provider, exit codes, drift lines, planned values, what apply changes and what destroy leaves. The
// same scenarios run in two worlds: the in-process fleet of hosttest (make test) and the lab with
// real Docker, Ray and vLLM (make test-lab, build tag lab).
package acceptance
