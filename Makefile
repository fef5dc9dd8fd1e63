# Short recipes; what is longer is a script in scripts/ or lab/.
.DEFAULT_GOAL := help
NODES ?= 2
export FUZZTIME ?= 30s

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo demo-down
demo: ## everything in one command: lab, provider, terraform apply of examples/two-sparks, a completion, an idle plan
	scripts/demo

demo-down: ## what demo made goes away: terraform destroy, lab down
	scripts/demo-down

.PHONY: build install-local
build: ## the agents and the provider into build/
	scripts/build

install-local: ## the provider into build/mirror, and build/terraform.rc to use it with terraform init
	scripts/install-local

.PHONY: test test-lab bench fuzz
test: ## unit and acceptance tests against an in-process host; needs Go and the Terraform CLI only
	scripts/test

test-lab: ## the same behaviours on the lab, which must be up
	scripts/test-lab

fuzz: ## every fuzz target for FUZZTIME (30s), such as make fuzz FUZZTIME=60s
	scripts/fuzz

bench: ## what things cost, against what people use today, on the lab; writes build/bench.json
	scripts/bench

.PHONY: lab lab-down
lab: ## simulated DGX Sparks with real Docker, Ray and vLLM; NODES=1 to 4, default 2
	lab/up $(NODES)

lab-down: ## the lab goes away, its cached images stay (lab/down --purge removes those too)
	lab/down

.PHONY: lint vuln check check-size fmt docs
lint: ## formatting, vet, golangci-lint, shellcheck, length of files
	scripts/lint

vuln: ## known vulnerabilities that the code reaches
	scripts/vuln

check: ## go.mod, docs/ and CHANGELOG.md are as their sources say, the examples are valid
	scripts/check
	scripts/validate-examples

check-size: ## no Go file but tests over 400 lines
	scripts/check-size

fmt: ## format Go and Terraform code
	scripts/fmt

docs: ## write docs/ from schema, templates and examples
	scripts/docs

.PHONY: release-check
release-check: ## the release's configuration and the changelog are valid
	scripts/release-check
