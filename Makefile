# SPDX-License-Identifier: GPL-2.0
# The everyday commands; each is one call of ./ferry, which --help explains.
FERRY := ./ferry
RUN_ARGS ?=
TEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run test test-quick setup lint clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install missing packages (Debian, as root)
	@$(FERRY) setup

run: setup ## build, boot, sweep folio sizes and migrators, print the table, write runs/latest (RUN_ARGS="--baseline stock")
	@$(FERRY) bench move_pages --board x86-numa --report $(RUN_ARGS)

test: setup ## everything that must pass (TEST_ARGS="--suite NAME")
	@$(FERRY) test $(TEST_ARGS)

test-quick: setup ## pytest, KUnit and one boot: for daily work
	@$(FERRY) test --quick $(TEST_ARGS)

lint: ## ruff and mypy over the tool
	@$(FERRY) test --suite lint

clean: ## remove what tools left in the clone; the cache (~/.cache/ferry) and runs/ stay
	rm -rf .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
