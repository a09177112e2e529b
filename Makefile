# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# A thin front of nox: every target makes the environment that it needs, on a fresh Debian or
# Ubuntu machine too. The work is in noxfile.py.

NOX := tests/tools/bootstrap.sh

.DEFAULT_GOAL := help
.PHONY: help demo demo-clean cluster cluster-clean test test-full mutate lint format \
	build bench docs

help:
	@echo "make demo        a local fleet of nodes: plan, site, containers with GPUs, site again"
	@echo "make demo-clean  remove that fleet"
	@echo "make cluster     a local Kubernetes of real parts, with stand-in GPUs; make cluster-clean"
	@echo "make test        the tests of every change; STAGE=\"unit sanity\" for some of them, CHANGED=1"
	@echo "                 for those that your change touches (docs/development.md)"
	@echo "make test-full   all tests; goes on where it was stopped"
	@echo "make mutate      planted defects, and whether the unit tests catch them"
	@echo "make lint        all linters; make format repairs what a tool can repair"
	@echo "make build       the collection as a tarball in build/"
	@echo "make docs        the documentation site in build/docs/html"
	@echo "make bench       what it costs, beside what people use today: docs/benchmarks.md"

demo:
	@$(NOX) -s demo

demo-clean:
	@$(NOX) -s demo-clean

cluster:
	@$(NOX) -s cluster-up

cluster-clean:
	@$(NOX) -s cluster-clean

test:
	@CHANGED=$(CHANGED) $(NOX) -s test -- $(STAGE)

test-full:
	@AGAIN=$(AGAIN) $(NOX) -s test-full -- $(STAGE)

mutate:
	@$(NOX) -s mutate -- $(if $(AREA),--area "$(AREA)") $(if $(N),--number $(N)) \
		$(if $(SEED),--seed $(SEED))

lint:
	@$(NOX) -s lint

format:
	@$(NOX) -s format

build:
	@$(NOX) -s build

bench:
	@$(NOX) -s bench -- $(BENCH)

docs:
	@$(NOX) -s docs
