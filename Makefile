# Development tasks. `make` alone prints the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Deno 2.9 or newer from PATH, else the pinned version from npm in .deno/, installed on first use.
DENO_VERSION := $(shell awk '$$1 == "deno" { print $$2 }' .tool-versions)
DENO := $(shell command -v deno >/dev/null 2>&1 \
  && deno eval 'const [a, b] = Deno.version.deno.split(".").map(Number); Deno.exit(a > 2 || (a === 2 && b >= 9) ? 0 : 1)' 2>/dev/null \
  && command -v deno || echo $(CURDIR)/.deno/deno)
export DENO_TLS_CA_STORE ?= system,mozilla
export DENO_NO_UPDATE_CHECK := 1
# In CI the lock file must not change; locally `make deps` updates it.
FROZEN := $(if $(CI),--frozen,)
DEPS := node_modules/.svc-deps
VITEST = $(DENO) run -A node_modules/vitest/vitest.mjs run
comma := ,

.PHONY: help
help: ## Print this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: serve
serve: $(DEPS) ## Start the service on 127.0.0.1:8080 (ARGS='-c my.yaml' for more)
	@exec $(DENO) run -A main.ts serve $(ARGS)

.PHONY: dev
dev: $(DEPS) ## Start the service and restart it after each change of its source
	@exec $(DENO) run -A --watch=src,main.ts main.ts serve $(ARGS)

.PHONY: demo
demo: $(DEPS) ## Start a temporary service, send three messages, show replies, executions and a log
	@$(DENO) run -A test/demo.ts

.PHONY: test
test: $(DEPS) ## Run every test but the rules of `make check` (ARGS='test/store -t guard' for some)
	@$(if $(ARGS),,$(DENO) run -A build/test_bundle.ts && SVC_TEST_BUNDLE=.cache/tests/main.js) $(VITEST) $(ARGS)

.PHONY: coverage
coverage: $(DEPS) ## Run every test and write a coverage report to coverage/
	@$(VITEST) --coverage $(ARGS)

ENGINES ?= all
ENGINES_BRIEF ?=

.PHONY: test-engines
test-engines: $(DEPS) ## Run the real agent CLIs (from npm, into .cache/) against a scripted model (ENGINES=claude,codex)
	@$(DENO) run -A test/engines/install.ts $(subst $(comma), ,$(ENGINES) $(ENGINES_BRIEF))
	@SVC_TEST_ENGINES=$(ENGINES) SVC_TEST_ENGINES_BRIEF=$(ENGINES_BRIEF) \
	  $(VITEST) test/engines --retry=1 $(ARGS)

.PHONY: check
check: $(DEPS) ## Check format, lint, types and the rules of test/house
	@$(DENO) fmt --check --quiet
	@$(DENO) lint --quiet
	@$(DENO) run -A build/console_types.ts
	@$(DENO) check --quiet main.ts src cli console build test bench
	@$(VITEST) test/house --reporter=dot

.PHONY: audit
audit: $(DEPS) ## Compare the pinned packages with published advisories (build/advisories.json, and the registry where it answers)
	@$(DENO) run -A build/audit.ts

.PHONY: format
format: $(DEPS) ## Format every file
	@$(DENO) fmt --quiet

.PHONY: bench
bench: $(DEPS) ## Measure speed and memory next to an empty program; print a table, write bench/results/
	@$(DENO) run -A bench/run.ts $(ARGS)

.PHONY: pictures
pictures: $(DEPS) ## Take pictures of every console page (ARGS='/tmp/pictures'; --docs: also those of the README)
	@$(DENO) run -A test/pictures.ts $(ARGS)

.PHONY: torture
torture: $(DEPS) ## Kill the service at random under load for 15 minutes, then check that nothing is lost (ARGS='--seconds=60 --seed=7 --hostile'; --runners=3: with runners; --warm: with open agents)
	@$(DENO) run -A test/torture/torture.ts $(ARGS)

.PHONY: mutants
mutants: $(DEPS) ## Change the sources in small ways and report the changes that no test notices (ARGS='src/store --sample=50 --seed=2')
	@$(DENO) run -A test/mutation/mutate.ts $(ARGS)

.PHONY: build
build: $(DEPS) ## Build the executable dist/svc (DENORT_BIN: path of Deno's runtime, instead of a download)
	@$(DENO) run -A build/main.ts

.PHONY: docs
docs: $(DEPS) ## Write docs/reference/cli.md from the commands, docs/reliability.md from promises and tests
	@$(DENO) run -A test/reference.ts
	@$(DENO) run -A test/reliability.ts

.PHONY: man
man: $(DEPS) ## Write the man pages dist/man/svc.1 and svc-ctl.1 from the commands
	@$(DENO) run -A build/man.ts

.PHONY: release
release: $(DEPS) ## Build archives, checksums and a bill of materials in dist/release (TARGETS='linux-x64' for some)
	@$(DENO) run -A build/release.ts $(TARGETS)

.PHONY: deps
deps: $(DENO) ## Install the packages that deno.lock names
	@$(DENO) install $(FROZEN) --quiet
	@touch $(DEPS)

.PHONY: hooks
hooks: ## Check the message of each commit in this clone (.githooks/commit-msg)
	@git config core.hooksPath .githooks

.PHONY: clean
clean: ## Remove everything that make built or installed here, except data directories
	@rm -rf dist coverage bench/results node_modules .deno .cache

$(DEPS): deno.json deno.lock | $(DENO)
	@$(DENO) install $(FROZEN) --quiet
	@touch $@

$(CURDIR)/.deno/deno:
	@command -v npm >/dev/null || { echo "This needs Deno 2.9 or newer on PATH, or npm (comes with Node.js) to get it." >&2; exit 1; }
	@echo "Installing Deno $(DENO_VERSION) from npm into .deno/" >&2
	@mkdir -p .deno
	@npm install --prefix .deno --no-save --ignore-scripts --no-audit --no-fund --loglevel=error deno@$(DENO_VERSION) >&2
	@ln -sf "$$(ls -d .deno/node_modules/@deno/*/deno* | head -1 | sed 's#^.deno/##')" .deno/deno
	@.deno/deno --version >&2
