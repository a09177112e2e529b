# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tasks of development. ``make`` is a front of this file; ``nox -l`` lists them.

No session has an environment of nox's own: tests/tools/environments.py makes them in the user's
cache, by Python and requirements, so that a second checkout finds them ready.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nox
from nox.command import CommandFailed

sys.path.insert(0, str(Path(__file__).parent))

from tests.testbed import runs
from tests.tools import changed, environments, links, passed, report, sanity, stages, tiers
from tests.tools import mutate as mutants

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "test"]

OLDEST_CORE_PYTHON = "3.11"
# Processes of pytest in one stage; set by the stages that run side by side.
WORKERS = "KUBEGPU_TEST_WORKERS"


def _tools(session: nox.Session, name: str = "test", version: str | None = None) -> Path:
    """Put an environment first on PATH and return its folder of programs."""
    binaries = environments.environment(name, version)
    session.env["PATH"] = f"{binaries}:{os.environ['PATH']}"
    session.env["ANSIBLE_COLLECTIONS_PATH"] = str(environments.collections())
    return binaries


def _own_ansible_home(stage: str) -> dict[str, str]:
    """Keep what molecule and ansible-lint install out of the user's home.

    Both install this collection there, and a later run would find that copy before the checkout.
    """
    return {"ANSIBLE_HOME": str(Path("build/ansible-home", stage).absolute())}


def _reports() -> Path:
    """Return the folder of logs and JUnit files of the tier that runs."""
    return Path("build", "test-full" if tiers.is_full() else "test").absolute()


def _pytest(session: nox.Session, stage: str, *arguments: str) -> None:
    binaries = _tools(session)
    words = ["-q", "-ra", f"--junitxml={_reports() / stage}.xml", *arguments]
    if tiers.is_full() and stage != "unit" and not session.posargs:
        folder = _reports() / "files" / stage
        if os.environ.get("AGAIN"):
            shutil.rmtree(folder, ignore_errors=True)
        words += ["-p", "tests.tools.passed_files"]
        words += [f"--passed-folder={folder}", f"--passed-stage={stage}"]
    session.run(str(binaries / "python"), "-m", "pytest", *words, external=True)


def _workers() -> list[str]:
    return ["-n", os.environ.get(WORKERS, "2")]


def _testbed(session: nox.Session, *arguments: str) -> None:
    binaries = _tools(session)
    session.run(str(binaries / "python"), "-m", "tests.testbed", *arguments, external=True)


# The stages of `make test`. Each is a session too.


@nox.session
def unit(session: nox.Session) -> None:
    """Unit tests, with the controller's Python and with the oldest that a node may have."""
    _pytest(session, "unit", *_workers(), "tests/unit", "tests/reports", *session.posargs)
    version = sanity.NODE_PYTHON
    if version not in environments.interpreters():
        session.log(f"Python {version} is not here: node code was not tested with it")
        return
    python = environments.environment("node", version) / "python"
    # Each module from end to end; the full tier runs all tests of what it imports.
    node_tests = ["tests/unit/plugins/modules"]
    if tiers.is_full():
        node_tests.append("tests/unit/plugins/module_utils")
    session.run(
        str(python), "-m", "pytest", "-q", "-ra", *_workers(), *node_tests, *session.posargs,
        f"--junitxml={_reports() / 'unit-python'}{version}.xml",
        # Modules run on nodes with the controller's ansible.module_utils.
        env={"PYTHONPATH": str(environments.module_utils(_tools(session)))},
        external=True,
    )  # fmt: skip


@nox.session
def controller(session: nox.Session) -> None:
    """Ansible on this machine alone: plans of machines that are trees of files, action plugins."""
    if tiers.is_full():
        # Batches are Ansible's own doing.
        version = environments.newest_controller()
        oldest = environments.environment("sanity-oldest", version)
        session.env["KUBEGPU_OLDEST_CORE"] = str(oldest)
    tests = ["tests/integration/plans", "tests/integration/controller"]
    _pytest(session, "controller", *_workers(), *tests, *session.posargs)


@nox.session
def engines(session: nox.Session) -> None:
    """Configurations judged by the real containerd and dockerd of three releases each."""
    _testbed(session, "validators")
    _pytest(session, "engines", *_workers(), "tests/integration/engines", *session.posargs)


@nox.session
def packages(session: nox.Session) -> None:
    """Repositories and packages with the real apt and dnf (full tier: dnf 5 and zypper too)."""
    binaries = _tools(session)
    need = "from tests.testbed.tools import need; need(('mmdebstrap', 'apt-ftparchive', 'gpg'))"
    session.run(str(binaries / "python"), "-c", need, external=True)
    _pytest(session, "packages", "tests/integration/packages", *session.posargs)


@nox.session(name="build-test")
def build_test(session: nox.Session) -> None:
    """Install the tarball into an empty place and read every document and playbook there.

    Full tier: the documentation site too, whose warnings are errors.
    """
    _pytest(session, "build", "tests/integration/build", *session.posargs)
    if tiers.is_full():
        docs.func(session)


@nox.session(name="sanity")
def sanity_session(session: nox.Session) -> None:
    """ansible-test sanity, no ignores, with the newest ansible-core; full tier: the oldest too."""
    newest = environments.newest_controller()
    words = list(session.posargs)
    runs = [("sanity-newest", newest, words)]
    if newest == OLDEST_CORE_PYTHON:
        session.log(f"Python {newest} takes no newer ansible-core than the oldest")
        runs = [("sanity-oldest", newest, words)]
    elif tiers.is_full():
        has_own = OLDEST_CORE_PYTHON in environments.interpreters()
        runs.append(("sanity-oldest", OLDEST_CORE_PYTHON if has_own else newest, words))
    failed = [name for name, version, words in runs if sanity.run(name, version, words)]
    if failed:
        session.error(f"failed: {', '.join(failed)}")


@nox.session
def fleet(session: nox.Session) -> None:
    """The playbooks on real nodes: containers with systemd, containerd, Docker and ssh."""
    _pytest(session, "fleet", "tests/integration/fleet", *session.posargs)
    if tiers.is_full() and not session.posargs:
        binaries = _tools(session)
        session.run(
            str(binaries / "molecule"), "test", "--scenario-name", "default",
            env={"MOLECULE_GLOB": "molecule/*/molecule.yml", **_own_ansible_home("molecule")},
            external=True,
        )  # fmt: skip


@nox.session
def drivers(session: nox.Session) -> None:
    """Drivers on nodes of their own: stand-in packages; in the full tier Debian's real ones too."""
    _tools(session)
    session.env["KUBEGPU_FLEET"] = "drivers"
    try:
        # The fixture brings the nodes up. In the full tier each has a worker of its own, since its
        # tests wait for it most of the time (conftest.py).
        workers = ["-n", "5"] if tiers.is_full() else []
        _pytest(session, "drivers", *workers, "tests/integration/drivers", *session.posargs)
    finally:
        del session.env["KUBEGPU_FLEET"]


@nox.session
def cluster(session: nox.Session) -> None:
    """A real Kubernetes with kubelets in node containers: labels, device plugin, verification."""
    _tools(session)
    session.env["KUBEGPU_FLEET"] = "cluster"
    try:
        _pytest(session, "cluster", "tests/integration/cluster", *session.posargs)
    finally:
        if os.environ.get(runs.RUN_VARIABLE):
            # Even idle it would take a tenth of a processor from the other stages.
            _testbed(session, "cluster-down")
        del session.env["KUBEGPU_FLEET"]


@nox.session
def lint(session: nox.Session) -> None:
    """All linters; goes on after a failure, so that one run shows everything."""
    binaries = _tools(session, "lint")
    # Some want the collection in its place, with nothing else there.
    root = environments.copy_checkout(Path("build/lint").absolute())
    place = root.parents[2]
    nodes = "ansible_collections/kubegpu/nodes"
    silent = ["--follow-imports=silent", f"--python-version={OLDEST_CORE_PYTHON}"]

    def mypy(name: str) -> list[str]:
        # A cache for each set of options.
        return ["mypy", f"--cache-dir={environments.borrow(f'mypy-{name}')}"]

    # Also that what the documentation refers to exists. In guides `make docs` sees that: the linter
    # knows no roles there.
    references = ["--plugin-docs", "--validate-collection-refs=self"]
    commands: list[tuple[str, str | Path, list[str]]] = [
        ("ruff format", ".", ["ruff", "format", "--check", "--quiet", "."]),
        ("ruff check", ".", ["ruff", "check", "--output-format", "concise", "."]),
        ("mypy of plugins", place, [*mypy("plugins"), "--strict", f"{nodes}/plugins"]),
        ("mypy of tests", root, [*mypy("tests"), *silent, "tests", "noxfile.py"]),
        ("import-linter", root, ["lint-imports", "--config", "pyproject.toml", "--no-cache"]),
        ("yamllint", ".", ["yamllint", "--strict", "."]),
        ("ansible-lint", root, ["ansible-lint", "--offline", "-q"]),
        ("antsibull-docs", root, ["antsibull-docs", "lint-collection-docs", *references, "."]),
        ("antsibull-changelog", ".", ["antsibull-changelog", "lint"]),
        ("licences", ".", ["reuse", "lint", "--lines"]),
        ("rules", ".", ["python", "-m", "pytest", "-q", "tests/tools"]),
    ]
    variables = {
        "ANSIBLE_COLLECTIONS_PATH": str(place),
        "MYPYPATH": str(place),
        "PYTHONPATH": str(place),
        **_own_ansible_home("lint"),
    }
    failed = []
    for name, folder, (program, *arguments) in commands:
        print(f"\n=== {name}", flush=True)
        try:
            with session.chdir(folder):
                argv = [str(binaries / program), *arguments]
                session.run(*argv, env=variables, external=True)
        except CommandFailed:
            failed.append(name)
    for name in ("plugins", "tests"):
        environments.give_back(f"mypy-{name}", good=f"mypy of {name}" not in failed)
    if failed:
        session.error(f"failed: {', '.join(failed)}")
    print("\nmake lint: passed")


# In the order in which they begin: what takes longest in the full tier, what tells of a mistake
# soon, the rest.
STAGES: dict[str, Callable[[nox.Session], None]] = {
    "cluster": cluster.func,
    "drivers": drivers.func,
    "unit": unit.func,
    "lint": lint.func,
    "engines": engines.func,
    "fleet": fleet.func,
    "packages": packages.func,
    "controller": controller.func,
    "sanity": sanity_session.func,
    "build": build_test.func,
}
# One more than two processors: nodes are waited for now and then.
AT_ONCE = 3
BUDGET = Path("tests", "budget.toml")


@nox.session
def test(session: nox.Session) -> None:
    """The default tier's stages, or the ones named: ``nox -s test -- unit sanity``.

    With CHANGED=1 in the environment, those that the files changed since the branch point touch.
    """
    os.environ[tiers.VARIABLE] = tiers.DEFAULT
    _run_tier(session, "test", _asked_for(session))


@nox.session(name="test-full")
def test_full(session: nox.Session) -> None:
    """All tests. What passed with these files is left out, unless AGAIN=1.

    That is a stage that is not named, and, in each stage, a file of tests.
    """
    os.environ[tiers.VARIABLE] = tiers.FULL
    os.environ.pop("CHANGED", None)
    names = _asked_for(session)
    if not session.posargs and not os.environ.get("AGAIN"):
        digests = passed.digests()
        done = [name for name in names if passed.has_passed(_reports(), name, digests[name])]
        names = [name for name in names if name not in done]
        if done:
            before = "passed before with the files that they depend on (AGAIN=1 repeats them)"
            print(f"{before}: {', '.join(done)}")
    _run_tier(session, "test-full", names)


def _asked_for(session: nox.Session) -> list[str]:
    names = list(session.posargs) or list(STAGES)
    unknown = sorted(set(names) - set(STAGES))
    if unknown:
        session.error(f"no such stage: {', '.join(unknown)}; there are {', '.join(STAGES)}")
    if session.posargs or not os.environ.get("CHANGED"):
        return names
    files = changed.changed_files()
    if files is None:
        session.log("CHANGED: there is no branch point, so all stages run")
        return names
    touched = changed.stages_of(files)
    session.log(f"CHANGED: {len(files)} files since the branch point")
    return [name for name in names if name in touched]


def _run_tier(session: nox.Session, tier: str, names: list[str]) -> None:
    """Run stages as one run of the test bed: what it starts ends with it."""
    runs.begin()
    try:
        _run_stages(session, tier, names)
    finally:
        runs.end()


def _run_stages(session: nox.Session, tier: str, names: list[str]) -> None:
    """Run stages; one alone on the screen, several side by side with a report at the end."""
    alone = len(session.posargs) == 1
    session.posargs.clear()
    if alone:
        digest = passed.digests()[names[0]]
        passed.forget(_reports(), names[0])
        STAGES[names[0]](session)
        passed.note(_reports(), names[0], digest)
        print(f"\nmake {tier}: {names[0]} passed")
        return
    if not names:
        print(f"\nmake {tier}: nothing to do")
        return
    begin = time.monotonic()
    busy = report.busy_seconds()
    # Environments are made before two stages want the same one at the same time.
    for environment in ("test", "lint"):
        environments.environment(environment)
    environments.collections()
    # More processes than processors would only take turns.
    at_once = min(AT_ONCE, len(names))
    os.environ.setdefault(WORKERS, str(min(2, (os.cpu_count() or 1) // at_once)))
    chosen = [name for name in STAGES if name in names]
    results = stages.run_stages(chosen, lambda name: _stage(tier, name), _reports(), at_once)
    print("\nThe slowest tests:", *report.slowest_tests(_reports(), chosen), sep="\n")
    print("", *report.table(results), sep="\n")
    if not tiers.is_full():
        print(*report.over_budget(BUDGET, results), sep="\n")
    failed = [result.name for result in results if result.code]
    total = time.monotonic() - begin
    cpu = report.busy_seconds() - busy
    end = f"FAILED ({', '.join(failed)})" if failed else "passed"
    print(f"make {tier}: {end} in {total:.0f} s; this machine's processors worked {cpu:.0f} s")
    if failed:
        session.error(f"failed: {', '.join(failed)}")


def _stage(tier: str, name: str) -> list[str]:
    """A process of its own: stages set the environment and write to the screen."""
    return [sys.executable, "-m", "nox", "--noxfile", __file__, "-s", tier, "--", name]


@nox.session
def mutate(session: nox.Session) -> None:
    """Plant small defects in the pure code and see whether the unit tests catch them."""
    environments.environment("test")
    runs.begin()
    try:
        code = mutants.main(session.posargs)
    finally:
        runs.end()
    if code:
        session.error("mutate: the run was stopped or could not begin")


@nox.session(name="format")
def format_session(session: nox.Session) -> None:
    """Repair what a tool can repair."""
    binaries = _tools(session, "lint")
    session.run(str(binaries / "ruff"), "check", "--fix", ".", external=True)
    session.run(str(binaries / "ruff"), "format", ".", external=True)


@nox.session
def build(session: nox.Session) -> None:
    """The collection as a tarball in build/."""
    binaries = _tools(session)
    copied = environments.copy_checkout(Path("build/tarball").absolute())
    readme = copied / "README.md"
    readme.write_text(links.for_galaxy(readme.read_text(encoding="utf-8"), links.address()))
    session.run(
        str(binaries / "ansible-galaxy"), "collection", "build", str(copied),
        "--output-path", "build", "--force", external=True,
    )  # fmt: skip


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation site, in build/docs/html; warnings are errors, the network is not used."""
    binaries = environments.environment("docs")
    session.run(sys.executable, "-m", "tests.tools.docsite", str(binaries), external=True)


@nox.session
def bench(session: nox.Session) -> None:
    """What the collection costs, beside what people use today; docs/benchmarks.md is written."""
    binaries = _tools(session)
    arguments = session.posargs or ["--write"]
    session.run(str(binaries / "python"), "-m", "tests.bench", *arguments, external=True)


@nox.session
def demo(session: nox.Session) -> None:
    """The main job on a local fleet of node containers."""
    _testbed(session, "demo", *session.posargs)


@nox.session(name="demo-clean")
def demo_clean(session: nox.Session) -> None:
    """Remove the fleet of the demo."""
    _testbed(session, "demo-clean", *session.posargs)


@nox.session(name="cluster-up")
def cluster_up(session: nox.Session) -> None:
    """A local Kubernetes with two GPU nodes and one without, for the playbooks."""
    _testbed(session, "cluster-up", *session.posargs)


@nox.session(name="cluster-clean")
def cluster_clean(session: nox.Session) -> None:
    """Remove that cluster."""
    _testbed(session, "cluster-clean", *session.posargs)
