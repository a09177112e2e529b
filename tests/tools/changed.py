# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which stages a change touches: ``make test CHANGED=1``.

A file touches the stages of its row in :data:`TABLE`, and those of all files that import it.
What is only imported has no row of its own. ``tests/unit/tools/test_changed.py`` holds both whole.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import subprocess
from collections.abc import Iterable

from tests.tools.environments import REPOSITORY, checkout_files

EVERY = frozenset(
    (
        *("lint", "unit", "sanity", "build", "engines"),
        *("controller", "packages", "fleet", "drivers", "cluster"),
    )
)
# What every file of the collection touches.
_ALWAYS = frozenset(("lint", "build"))
_CODE = _ALWAYS | {"unit", "sanity"}
_NODES = frozenset(("fleet", "drivers", "cluster"))
_RUNTIMES = frozenset(("engines", "fleet", "cluster"))
_PACKAGES = _NODES | {"packages"}
_DRIVERS = _NODES | {"packages", "controller"}
_CLUSTER = frozenset(("cluster",))
_REPORTS = _NODES | {"controller"}

# Patterns of paths (``*`` takes slashes too) and the stages; the first row that fits counts.
TABLE: tuple[tuple[str, frozenset[str]], ...] = (
    # What modules, actions and filters do on nodes.
    ("plugins/*/containerd_runtime.py", _CODE | _RUNTIMES),
    ("plugins/*/docker_runtime.py", _CODE | _RUNTIMES),
    ("plugins/*/crio_runtime.py", _CODE | _RUNTIMES),
    ("plugins/*/container_toolkit_config.py", _CODE | _RUNTIMES),
    ("plugins/*/runtime_configuration.py", _CODE | {"drivers", "controller"}),
    ("plugins/*/cdi_specification.py", _CODE | {"fleet", "cluster"}),
    ("plugins/*/amd_cdi_specification.py", _CODE | {"packages"}),
    ("plugins/*/package_set.py", _CODE | _PACKAGES),
    ("plugins/*/package_repository.py", _CODE | _PACKAGES),
    ("plugins/*/runfile_download.py", _CODE | _DRIVERS),
    ("plugins/*/nvidia_driver*.py", _CODE | _DRIVERS),
    ("plugins/*/nvidia_mig*.py", _CODE | _NODES | {"controller"}),
    ("plugins/*/gpu_exporter*.py", _CODE | {"fleet"}),
    ("plugins/*/prometheus_gpu_files.py", _CODE | {"fleet"}),
    ("plugins/*/cuda_*.py", _CODE | _DRIVERS),
    ("plugins/*/driver_required_by.py", _CODE | _DRIVERS),
    ("plugins/*/gpu_node_facts.py", _CODE | _NODES | {"controller"}),
    ("plugins/*/gpu_node_health.py", _CODE | {"fleet"}),
    ("plugins/*/gpu_node_texts.py", _CODE | {"fleet"}),
    ("plugins/*/gpu_node_verify.py", _CODE | {"fleet", "cluster"}),
    ("plugins/*/fleet_plan.py", _CODE | _DRIVERS),
    ("plugins/*/fleet_*.py", _CODE | _REPORTS),
    ("plugins/filter/gpu_resources_check.py", _CODE | _CLUSTER),
    ("plugins/*/*gpu_node_labels.py", _CODE | _CLUSTER),
    ("plugins/*/node_gpu_label.py", _CODE | _CLUSTER),
    ("plugins/*/node_pause.py", _CODE | _CLUSTER),
    ("plugins/*/node_reboot.py", _CODE | _DRIVERS),
    ("plugins/*/node_builtin.py", _CODE | _DRIVERS),
    ("plugins/*/cluster_objects.py", _CODE | _CLUSTER),
    ("plugins/*/gpu_cluster_info.py", _CODE | _CLUSTER),
    ("plugins/*/gpu_test_pods.py", _CODE | _CLUSTER),
    ("plugins/*/gpu_node_maintenance.py", _CODE | _CLUSTER),
    ("plugins/*/gpu_host_maintenance.py", _CODE | {"fleet"}),
    ("plugins/*/gpu_node_acceptance.py", _CODE | {"controller"} | _CLUSTER),
    ("plugins/filter/gpu_acceptance.py", _CODE | {"controller"} | _CLUSTER),
    ("plugins/filter/gpu_upgrade.py", _CODE | {"controller"} | _CLUSTER),
    ("plugins/filter/gpu_diagnosis.py", _CODE | {"fleet", "cluster"}),
    ("plugins/filter/*.py", _CODE | _REPORTS),
    ("plugins/callback/*.py", _CODE | {"controller"}),
    ("plugins/doc_fragments/*.py", _CODE),
    ("plugins/plugin_utils/_fleet_report/templates/*", _CODE | {"controller"}),
    # Roles and playbooks.
    ("roles/nvidia_driver/*", _CODE | _NODES | {"controller"}),
    ("roles/cuda_toolkit/*", _CODE | _NODES | {"controller"}),
    ("roles/nvidia_mig/*", _CODE | _NODES | {"controller"}),
    ("roles/nvidia_container_toolkit/*", _CODE | _NODES | {"controller"}),
    ("roles/amd_driver/*", _CODE | {"drivers", "controller"}),
    ("roles/amd_container_toolkit/*", _CODE | {"packages", "controller"}),
    ("roles/gpu_verify/*", _CODE | {"fleet", "cluster"}),
    ("roles/gpu_diagnose/*", _CODE | {"fleet", "cluster"}),
    ("roles/gpu_acceptance/*", _CODE | {"controller"} | _CLUSTER),
    ("roles/gpu_upgrade/*", _CODE | {"controller"} | _CLUSTER),
    ("roles/gpu_report/*", _CODE | {"controller"}),
    ("roles/gpu_monitoring/*", _CODE | {"fleet", "cluster"}),
    ("roles/*", _CODE | _CLUSTER),
    ("playbooks/examples/*", _ALWAYS | {"controller", "fleet", "cluster"}),
    ("playbooks/*", _CODE | _NODES | {"controller"}),
    ("molecule/*", _ALWAYS | {"fleet"}),
    # Tests.
    ("tests/unit/*", frozenset(("lint", "unit", "sanity"))),
    ("tests/reports/*", frozenset(("lint", "unit", "sanity"))),
    ("tests/integration/build/*", _ALWAYS | {"sanity"}),
    ("tests/integration/plans/*", frozenset(("lint", "sanity", "controller"))),
    ("tests/integration/controller/*", frozenset(("lint", "sanity", "controller"))),
    ("tests/integration/prometheus.py", frozenset(("lint", "sanity", "engines", "cluster"))),
    ("tests/integration/killed.py", frozenset(("lint", "sanity", "drivers", "fleet"))),
    ("tests/integration/killing.py", frozenset(("lint", "sanity", "drivers", "fleet"))),
    ("tests/integration/engines/*", frozenset(("lint", "sanity", "engines"))),
    ("tests/integration/packages/*", frozenset(("lint", "sanity", "packages"))),
    ("tests/integration/drivers/*", frozenset(("lint", "sanity", "drivers"))),
    ("tests/integration/cluster/*", frozenset(("lint", "sanity", "cluster"))),
    ("tests/integration/fleet/*", frozenset(("lint", "sanity", "fleet"))),
    ("tests/testbed/runs.py", EVERY - {"build"}),
    ("tests/testbed/cluster*", frozenset(("lint", "sanity", "cluster"))),
    ("tests/testbed/files/cluster*", frozenset(("lint", "sanity", "cluster"))),
    ("tests/testbed/files/kube-*", frozenset(("lint", "sanity", "cluster"))),
    ("tests/testbed/validators.py", frozenset(("lint", "sanity", "engines"))),
    ("tests/testbed/*", frozenset(("lint", "unit", "sanity", "packages", "engines")) | _NODES),
    ("tests/bench/*", frozenset(("lint", "sanity"))),
    ("tests/tools/show_flavours.py", frozenset(("lint", "sanity", "engines"))),
    ("tests/tools/docsite.py", frozenset(("lint", "sanity", "build"))),
    ("tests/requirements/docs.txt", _ALWAYS),
    ("tests/tools/compare_data.py", frozenset(("lint", "unit", "sanity"))),
    ("tests/tools/data_age.py", frozenset(("lint", "unit", "sanity"))),
    ("tests/*", EVERY),
    # What describes the project.
    ("docs/containerd-flavours.md", _ALWAYS | {"engines"}),
    ("docs/verify.md", _ALWAYS | {"unit"}),
    ("docs/variables.md", _ALWAYS | {"unit"}),
    ("docs/findings.md", _ALWAYS | {"unit"}),
    ("docs/diagnose.md", _ALWAYS | {"unit"}),
    ("docs/pictures/*", _ALWAYS | {"unit"}),
    ("docs/docsite/*.py", _ALWAYS | {"sanity"}),
    ("docs/docsite/rst/*", _ALWAYS | {"controller"}),
    ("docs/examples*", _ALWAYS | {"controller"}),
    ("docs/*", _ALWAYS),
    ("changelogs/*", _ALWAYS),
    ("LICENSES/*", frozenset(("lint",))),
    ("*.md", _ALWAYS),
    ("galaxy.yml", _CODE | {"controller"}),
    ("meta/*", _CODE | {"controller"}),
    (".gitignore", frozenset(("lint",))),
    (".yamllint", frozenset(("lint",))),
    (".ansible-lint", frozenset(("lint",))),
    ("LICENSE", _ALWAYS),
    ("REUSE.toml", frozenset(("lint",))),
    # How tests are run at all.
    (".ci/*", EVERY),
    ("Makefile", EVERY),
    ("noxfile.py", EVERY),
    ("pyproject.toml", EVERY),
)  # fmt: skip
# It begins and ends a run, and does nothing else with what it imports.
_BEGINS = "tests/conftest.py"
_ONLY_IMPORTED = ("plugins/module_utils/", "plugins/plugin_utils/")


def stages_of(paths: Iterable[str]) -> frozenset[str]:
    """Return the stages that a change of these files touches; all, where a file is not known."""
    return frozenset[str]().union(*(_stages(path) for path in paths))


def row_of(path: str) -> frozenset[str] | None:
    """Return the stages of the first row of the table that fits a file."""
    return next((row for glob, row in TABLE if fnmatch.fnmatchcase(path, glob)), None)


def _stages(path: str) -> frozenset[str]:
    rows = importers(path).values()
    own = _CODE if path.startswith(_ONLY_IMPORTED) and rows else row_of(path)
    return EVERY if own is None else own.union(*rows)


def importers(path: str) -> dict[str, frozenset[str]]:
    """Return the files with a row that import ``path``, over all steps, and their rows' stages."""
    users = (one for one, needed in _imports().items() if path in needed and one != _BEGINS)
    rows = {one: row_of(one) for one in users}
    return {one: row for one, row in rows.items() if row}


@functools.cache
def imports_of(path: str) -> frozenset[str]:
    """Return the files of the checkout that a Python file imports, over all steps."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        new = _imported_by(waiting.pop()) - found
        found |= new
        waiting.extend(new)
    return frozenset(found)


@functools.cache
def _imports() -> dict[str, frozenset[str]]:
    """Return what each Python file imports of the checkout, over all steps, by its path."""
    files = [path for path in checkout_files() if path.startswith(("plugins/", "tests/"))]
    return {path: imports_of(path) for path in files if path.endswith(".py")}


@functools.cache
def _imported_by(path: str) -> frozenset[str]:
    """Return the files of the collection that a file imports, wherever in it."""
    parts = path.removesuffix(".py").split("/")
    names: set[str] = set()
    for node in ast.walk(ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                module = ".".join([*parts[: len(parts) - node.level], *filter(None, [module])])
            module = module.removeprefix("ansible_collections.kubegpu.nodes.")
            names.add(module)
            names.update(f"{module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Import):
            names.update(one.name for one in node.names)
    own = (name for name in names if name.startswith(("plugins.", "tests.")))
    candidates = {f"{name.replace('.', '/')}.py" for name in own}
    return frozenset(name for name in candidates if (REPOSITORY / name).is_file())


def changed_files() -> list[str] | None:
    """Return what differs from the branch point, in commits or not; None where there is none.

    The branch point is where this branch left the upstream's ``main``, or, on another branch than
    ``main``, this checkout's own.
    """
    branch = _git("symbolic-ref", "--quiet", "--short", "HEAD")
    for base in ("origin/HEAD", "origin/main", "main"):
        if base == branch or _git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}") is None:
            continue
        point = _git("merge-base", base, "HEAD")
        if point:
            listed = _git("diff", "--name-only", "--no-renames", "-z", point) or ""
            others = _git("ls-files", "-z", "--others", "--exclude-standard") or ""
            return sorted(name for name in {*listed.split("\0"), *others.split("\0")} if name)
    return None


def _git(*arguments: str) -> str | None:
    done = subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    return done.stdout.strip("\n") if done.returncode == 0 else None
