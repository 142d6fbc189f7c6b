# The commands of this repository; `make` alone lists them. Each says what it lacks.

# A fresh rustup is not on the PATH of a shell that was open before; Debian puts pgbouncer where only root looks.
export PATH := $(HOME)/.cargo/bin:$(PATH):/usr/sbin

TARGET := $(or $(CARGO_TARGET_DIR),target)

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench bench-peers dev model-deep

help: ## this list
	@awk -F ': ## ' '/^[a-z-]+: ## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

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

model-deep: ## explore the protocol in larger worlds than the suite has time for
	cargo run --locked --release --package aegis-proof --example deep

dev: ## a demo that stays: its PostgreSQL and worker run until Ctrl-C
	@scripts/prepare demo
	@echo "Starting the demo with --keep: what it starts stays until you end it with Ctrl-C."
	cargo run --locked --package aegis -- demo --fetch-postgres --keep $(ARGS)
