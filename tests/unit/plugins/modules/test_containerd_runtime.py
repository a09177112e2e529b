# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it, without asking a containerd (the real one judges elsewhere)."""

from __future__ import annotations

import json
import os
import shutil
import time
import tomllib
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd import host
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.apply import (
    ContainerdRuntime,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.distributions import (
    DISTRIBUTIONS,
    PLAIN,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.dump import read_effective
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.host import Dependencies
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.options import Settings
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.record import HandlerRecord
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.fingerprint import (
    file_signature,
    process_start_id,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.systemd import Daemon
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.converged import (
    cached_report,
    converged_fingerprints,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.modules import containerd_runtime
from tests.unit.fixtures.documented import documented_options
from tests.unit.module_process import predicted, run_module

DUMP = (
    Path(__file__).resolve().parents[2]
    / "fixtures/runtime_facts/config-dump-containerd-1.7.24.toml"
)
TEXT = (
    "# mine\nversion = 2\n\n"
    '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\n'
    '  runtime_type = "io.containerd.runc.v2"\n'
)


@pytest.fixture
def arguments(tmp_path):
    config = tmp_path / "etc" / "config.toml"
    config.parent.mkdir()
    config.write_text(TEXT)
    config.chmod(0o604)
    return {
        "config_path": str(config),
        "drop_in_path": str(tmp_path / "etc" / "conf.d" / "99-nvidia.toml"),
        "state_path": str(tmp_path / "var" / "state.json"),
        "containerd_path": str(tmp_path / "no-such-binary"),
        "containerd_version": "1.7.24",
        "distribution": "containerd",
        "validate": False,
        "unit": "kubegpu-test-no-such-unit",
    }


def run(arguments, **options):
    answer = predicted(containerd_runtime.main, {**arguments, **options})
    assert not answer.get("failed"), answer
    return answer


def test_present_again_absent_and_absent_again(arguments, tmp_path):
    config = tmp_path / "etc" / "config.toml"
    first = run(arguments)
    assert first["changed"]
    assert first["diff"][0]["before"] == TEXT
    assert first["diff"][0]["after"] == config.read_text()
    assert first["backup_file"].startswith(str(tmp_path / "var" / "backups"))
    assert "nvidia" in config.read_text()
    again = run(arguments)
    assert (again["changed"], again["diff"]) == (False, [])
    assert run(arguments, state="absent")["changed"]
    assert config.read_text() == TEXT
    assert config.stat().st_mode & 0o777 == 0o604
    assert not (tmp_path / "var").exists()
    assert not run(arguments, state="absent")["changed"]


def test_absent_forgets_a_distribution_that_has_left_the_node(arguments, tmp_path):
    """k3s was removed with its own script, and another containerd came."""
    run(arguments)
    store = StateStore(arguments["state_path"])
    with store.transaction():
        store.put(
            "loaded:k3s:/var/lib/rancher/k3s/agent/etc/containerd/config.toml", {"sha256": "0"}
        )
    run(arguments, state="absent")
    assert not (tmp_path / "var").exists()


# Two handlers, one of which becomes the default in some runs.
STEPS = {
    "nvidia": {},
    "nvidia!": {"set_default": True},
    "second": {"name": "second"},
    "second!": {"name": "second", "set_default": True},
    "no nvidia": {"state": "absent"},
    "no second": {"name": "second", "state": "absent"},
}
ENDS = (("no nvidia", "no second"), ("no second", "no nvidia"))
# With the registry's password, which a backup that is left would keep.
SECRET = TEXT + (
    '[plugins."io.containerd.grpc.v1.cri".registry.configs."r".auth]\npassword = "correct horse"\n'
)
CRUN = TEXT.replace(
    "runtimes.runc]",
    'runtimes.crun]\nruntime_type = "io.containerd.runc.v2"\n'
    '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]',
).replace(
    "version = 2\n",
    'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\n'
    'default_runtime_name = "crun"\n',
)


@pytest.mark.parametrize("length", [2, pytest.param(3, marks=pytest.mark.full(why="longer"))])
@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param(SECRET, "1.7.24", id="runc-1.7"),
        pytest.param(CRUN, "2.1.9", id="crun-2.1", marks=pytest.mark.full(why="another file")),
        pytest.param(CRUN, "1.7.24", id="crun-1.7", marks=pytest.mark.full(why="another file")),
        pytest.param("", "1.7.24", id="empty", marks=pytest.mark.full(why="another file")),
        pytest.param(None, "2.1.9", id="none", marks=pytest.mark.full(why="no file")),
    ],
)
def test_two_handlers_in_any_order_leave_nothing(tmp_path, text, version, length):
    """Seen: of 608 orders 103 left a backup for ever, and 16 an empty table."""
    config, state = tmp_path / "etc" / "config.toml", tmp_path / "var" / "state.json"
    config.parent.mkdir()
    if version == "2.1.9" and text:
        # So that a file of our own takes part.
        text = f'imports = ["{config.parent}/conf.d/*.toml"]\n' + text
    (tmp_path / "runtime").write_text("")
    settings = Settings(
        distribution="containerd", containerd_version=version, validate=False, unit="no-such-unit"
    )

    def run(**options):
        request = Request(
            config_path=str(config),
            drop_in_path=str(config.parent / "conf.d" / "99-nvidia.toml"),
            runtime_path=str(tmp_path / "runtime"),
            **options,
        )
        node = Dependencies(
            run=lambda _argv, **_more: Result(127, "", "no such program"),
            parse=tomllib.loads,
            store=StateStore(str(state)),
            scratch=str(tmp_path / "scratch"),
            exists=os.path.lexists,
        )
        ContainerdRuntime(request, settings, node)(check=False)

    def left():
        files = sorted(str(path) for path in tmp_path.rglob("*") if path.name != "runtime")
        return files, config.read_text() if config.exists() else None

    if text is not None:
        config.write_text(text)
    before = left()
    wrong = {}
    orders = (order for size in range(1, length + 1) for order in product(STEPS, repeat=size))
    for order in (before_end + end for before_end in orders for end in ENDS):
        for step in order:
            run(**STEPS[step])
        if left() != before:
            wrong[order] = left()
            shutil.rmtree(tmp_path / "var", ignore_errors=True)
            shutil.rmtree(config.parent / "conf.d", ignore_errors=True)
            config.unlink(missing_ok=True)
            if text is not None:
                config.write_text(text)
    assert wrong == {}


def test_a_merged_base_that_is_no_toml_does_not_stop_the_removal(arguments, tmp_path):
    """The text without a handler is merged by lines where somebody edited in between."""
    config = tmp_path / "etc" / "config.toml"
    second = f"containerd_runtime:second:{config}"
    run(arguments)
    run(arguments, name="second")
    store = StateStore(arguments["state_path"])
    with store.transaction():
        record = store.record(second)
        history = replace(HandlerRecord.from_json(record.details), base=TEXT + "[plugins\n")
        store.put_record(second, replace(record, details=history.to_json()))
    assert run(arguments, state="absent")["changed"]
    left = tomllib.loads(config.read_text())
    runtimes = left["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]
    assert set(runtimes) == {"runc", "second"}
    assert [*StateStore(arguments["state_path"]).records("containerd_runtime:")] == [second]
    assert run(arguments, name="second", state="absent")["changed"]
    assert tomllib.loads(config.read_text()) == tomllib.loads(TEXT)
    assert not (tmp_path / "var").exists()


@pytest.fixture
def quiet(arguments, tmp_path, monkeypatch):
    """A daemon that began after the handler was written; return a run and what facts would say."""
    binary = tmp_path / "containerd"
    binary.write_text("#!/bin/sh\necho containerd x 1.7.24\n")
    binary.chmod(0o755)
    (tmp_path / "runtime").write_text("")
    daemon = Daemon("u", True, True, os.getpid(), 0.0, (), process_start_id(os.getpid()))
    monkeypatch.setattr(host, "read_daemon", lambda *_given: daemon)

    def run_one(fingerprint="a", started=0.0, **options):
        nonlocal daemon
        daemon = replace(daemon, started=time.time() + started)
        given = {"containerd_path": str(binary), "runtime_path": str(tmp_path / "runtime")}
        given |= {"fingerprint": fingerprint, **options}
        return run_module(containerd_runtime.main, {**arguments, **given})

    def noted():
        path = tmp_path / "var" / "state.json"
        record = json.loads(path.read_text()) if path.exists() else {}
        return converged_fingerprints(
            record, "containerd", "containerd", file_signature, process_start_id
        )

    assert run_one()["changed"] and noted() == {}
    # The daemon is older than the file: a restart is left to do.
    assert run_one(started=-60)["restart_required"] and noted() == {}
    assert not run_one(started=60)["changed"]
    assert noted() == {"nvidia": "a"}
    return run_one, noted


def test_what_containerd_says_is_kept_for_the_facts(quiet, tmp_path):
    run_one, _noted = quiet
    asked = tmp_path / "asked"
    (tmp_path / "containerd").write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo containerd x 1.7.24; exit; fi\n'
        f'echo "$@" >> {asked}\ncat {DUMP}\n'
    )

    def kept():
        record = json.loads((tmp_path / "var" / "state.json").read_text())
        files = [str(tmp_path / "containerd"), str(tmp_path / "etc" / "config.toml")]
        return cached_report(
            record,
            "containerd",
            "containerd",
            files,
            signature=file_signature,
            process_start=process_start_id,
        )

    assert kept() is None
    assert not run_one(started=60)["changed"]
    assert kept() == {"version": "containerd x 1.7.24\n", **read_effective(DUMP.read_text())}
    # Once is enough.
    assert not run_one(started=60)["changed"]
    assert asked.read_text().splitlines() == [f"--config {tmp_path}/etc/config.toml config dump"]


@pytest.mark.parametrize(
    "touch",
    [
        lambda folder: (folder / "etc" / "config.toml").chmod(0o600),
        lambda folder: (folder / "etc" / "other.toml").rename(folder / "etc" / "config.toml"),
        lambda folder: (folder / "containerd").write_text("#!/bin/sh\n"),
        lambda folder: (folder / "runtime").unlink(),
    ],
    ids=["mode", "replaced", "another containerd", "runtime gone"],
)
def test_what_is_touched_is_looked_at_again(quiet, tmp_path, touch):
    _run_one, noted = quiet
    (tmp_path / "etc" / "other.toml").write_bytes((tmp_path / "etc/config.toml").read_bytes())
    touch(tmp_path)
    assert noted() == {}


def test_imported_folders_and_files_are_looked_at_too(quiet, tmp_path):
    run_one, noted = quiet
    config, more = tmp_path / "etc" / "config.toml", tmp_path / "etc" / "more"
    more.mkdir()
    text = f'imports = ["{more}/*.toml"]\n{config.read_text()}'
    config.write_text(text)
    assert not run_one(started=60)["changed"] and noted() == {"nvidia": "a"}
    (more / "50.toml").write_text("version = 2\n")
    assert noted() == {}
    assert not run_one(started=60)["changed"] and noted() == {"nvidia": "a"}
    (more / "50.toml").write_text("version = 2\n# edited\n")
    assert noted() == {}


def test_another_wish_is_another_note_and_none_leaves_it(quiet, tmp_path):
    run_one, noted = quiet
    run_one("b", started=60)
    assert noted() == {"nvidia": "b"}
    assert not run_one("", started=60)["changed"]
    assert noted() == {"nvidia": "b"}
    assert run_one("", started=60, set_default=True)["changed"]
    assert noted() == {}
    # Nothing is left to do, but nobody said what for.
    assert not run_one("", started=60, set_default=True)["changed"]
    assert noted() == {}
    run_one("b", started=60, set_default=True)
    assert noted() == {"nvidia": "b"}
    assert run_one(state="absent")["changed"]
    assert not (tmp_path / "var").exists()


def test_check_mode_writes_nothing(arguments, tmp_path):
    answer = run_module(containerd_runtime.main, arguments, check=True)
    assert answer["changed"]
    assert (tmp_path / "etc" / "config.toml").read_text() == TEXT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["etc"]


def test_no_containerd_is_told_with_the_next_step(arguments):
    del arguments["containerd_version"]
    answer = predicted(containerd_runtime.main, arguments)
    assert answer["failed"]
    assert "not installed" in answer["cause"]
    assert "Install containerd" in answer["next_step"]


def test_a_toolkit_that_the_same_run_installs_is_not_missed(arguments, tmp_path):
    options = {**arguments, "runtime_path": str(tmp_path / "not-there"), "toolkit_expected": True}
    planned = run_module(containerd_runtime.main, options, check=True)
    assert planned["changed"] and not planned.get("warnings")
    # Without check mode it has to be there by now.
    answer = run_module(containerd_runtime.main, options)
    assert any("does not exist yet" in reason for reason in answer["reasons"])


def test_default_without_its_binary_is_refused_but_planned(arguments, tmp_path):
    options = {**arguments, "set_default": True, "runtime_path": str(tmp_path / "not-there")}
    planned = run_module(containerd_runtime.main, options, check=True)
    assert planned["changed"]
    assert any("does not exist yet" in reason for reason in planned["reasons"])
    answer = run_module(containerd_runtime.main, options)
    assert answer["failed"]
    assert (tmp_path / "etc" / "config.toml").read_text() == TEXT


def test_file_that_is_no_toml_is_refused(arguments, tmp_path):
    (tmp_path / "etc" / "config.toml").write_text("version = = 2\n")
    answer = predicted(containerd_runtime.main, arguments)
    assert answer["failed"]
    assert "not valid TOML" in answer["cause"]


def test_documented_options_are_the_real_ones():
    documented = documented_options(containerd_runtime)
    assert set(documented) == set(containerd_runtime.ARGUMENTS)
    for name, option in containerd_runtime.ARGUMENTS.items():
        assert documented[name].get("default") == option.get("default"), name
        assert documented[name].get("choices") == option.get("choices"), name
        assert documented[name]["type"] == option["type"], name


def test_every_distribution_can_be_chosen_by_name():
    names = [distribution.name for distribution in (PLAIN, *DISTRIBUTIONS)]
    assert sorted(["auto", *names]) == sorted(
        containerd_runtime.ARGUMENTS["distribution"]["choices"]
    )
    for option, value in (
        ("config_path", PLAIN.config_path),
        ("unit", PLAIN.units[0]),
        ("socket", PLAIN.socket),
    ):
        assert containerd_runtime.ARGUMENTS[option]["default"] == value


def test_the_diff_comes_with_diff_mode_alone(arguments):
    for check in (True, False):
        answer = run_module(containerd_runtime.main, arguments, check=check, diff=False)
        assert answer["changed"] and "diff" not in answer


def test_the_diff_has_what_changes(arguments):
    """A whole file was shown, with the credentials of its registries."""
    tables = "".join(f"[timeouts.a{number}]\n  x = {number}\n" for number in range(30))
    with open(arguments["config_path"], "a", encoding="ascii") as handle:
        handle.write(f'\n{tables}[host."https://r.example".header]\n  X-Foo = "hunter2"\n')
    (part,) = run(arguments)["diff"]
    assert "nvidia" in part["after"] and "a15" not in part["before"] + part["after"]
    assert "hunter2" not in part["before"] + part["after"]
