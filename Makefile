# The commands of this repository; `make` alone lists them. Each says what it lacks.

# A fresh rustup is not on the PATH of a shell that was open before; Debian puts pgbouncer where only root looks.
export PATH := $(HOME)/.cargo/bin:$(PATH):/usr/sbin

# What `aegis version` says; unknown outside of a clone.
export AEGIS_BUILD_COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)

TARGET := $(or $(CARGO_TARGET_DIR),target)

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench bench-peers chaos chaos-seeds dev fuzz model-deep migrate-facts mutants mutants-chaos mutants-rust skew test-pg18

help: ## this list
	@awk -F ': ## ' '/^[a-z0-9-]+: ## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: ## build, then run the demo on a PostgreSQL of its own; ARGS="…" reaches `aegis demo`
	@scripts/prepare demo
	cargo build --locked --release --package aegis
	$(TARGET)/release/aegis demo --fetch-postgres $(ARGS)

test: ## everything CI runs: format, tidy, clippy, SQL, docs, tests
	@scripts/check all

lint: ## the quick part of it: format, tidy, clippy
	@scripts/check lint

bench: ## the benchmarks, in release; ARGS="…" reaches them
	@scripts/prepare demo
	cargo run --locked --release --package aegis-bench -- --fetch-postgres $(ARGS)

bench-peers: ## Aegis and its peers on the same work, each at its best; ARGS="--only awa --jobs 5000 --rounds 1" reaches it
	@scripts/prepare demo
	cargo run --locked --release --package aegis-bench -- peers --fetch-postgres $(ARGS)

chaos-seeds: ## the three fixed seeds of chaos and the broken database, as in the suite
	@scripts/prepare test
	cargo test --locked --package aegis --test it -- drill::

chaos: ## real processes, killed, frozen and cut off: SEED=n (random by default), MINUTES=n, CUTS=n, BEFORE=an older aegis; leaves DIR=a new folder
	@scripts/prepare chaos
	cargo build --locked --release --package aegis
	$(TARGET)/release/aegis drill chaos --fetch-postgres --seed $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom)) \
		--minutes $(or $(MINUTES),10) --cut-tasks $(or $(CUTS),1000) $(if $(BEFORE),--version-before $(BEFORE)) \
		--report $(or $(DIR),$(TARGET)/chaos/$(shell date +%s))

skew: ## chaos with the program of before the schema moved as every second worker; SEED=n, MINUTES=n, CUTS=n
	@scripts/prepare chaos
	@scripts/skew

mutants: ## mistakes made in the SQL one by one, and which check notices each, with the score; AEGIS_MUTANTS=worker/renew,aegis.reap for some; PG=18
ifeq ($(PG),18)
	@scripts/test-pg18 mutants
else
	cargo test --locked --package aegis-store --test it -- --include-ignored --nocapture --test-threads 1 mutants::
endif

mutants-chaos: ## engines that are broken on purpose, one by one, and whether chaos notices; ARGS="reaper-leaves" for some; SEED=n, MINUTES=n
	@scripts/mutants-chaos $(ARGS)

mutants-rust: ## the same in the Rust code that decides who may write, with cargo-mutants; ARGS="model" for a part
	@scripts/mutants-rust $(ARGS)

fuzz: ## what reads bytes from outside, a minute each: libFuzzer where it is there; SECONDS_EACH=n
	@scripts/fuzz

migrate-facts: ## what each form of DDL does on PostgreSQL 14 to 18, measured again
	cargo xtask migrate-facts $(ARGS)

test-pg18: ## the tests of the store and of the worker on PostgreSQL 18, whose binaries are fetched
	@scripts/test-pg18 all

model-deep: ## explore the protocol in larger worlds than the suite has time for
	cargo run --locked --release --package aegis-proof --example deep

dev: ## a PostgreSQL that keeps its data and a worker with examples, until Ctrl-C; ARGS="…" reaches `aegis dev`
	@scripts/prepare demo
	cargo run --locked --package aegis -- dev --fetch-postgres $(ARGS)
