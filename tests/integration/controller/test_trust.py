# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the root user of a node can do to the controller, and what its own user can by mistake."""

from __future__ import annotations

import base64
import copy
import json
import os

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.openpgp import read_keys
from tests.integration.controller.hostile_nodes import Hostile
from tests.unit.fixtures.keys import ED25519
from tests.unit.fixtures.node_facts import node

SECRET = "a-secret-of-the-controller-0123456789"
FULL = pytest.mark.full(why="another playbook or another way, by the same code")
INJECT = pytest.mark.parametrize("inject", [True, False], ids=["injected", "not-injected"])


@pytest.fixture
def nodes(tmp_path):
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "precious").write_text('{"of": "a person"}')
    return Hostile(tmp_path)


def hostile(folder):
    """Return facts that are names of variables, with paths of the controller."""
    return {
        "nvidia_driver_licence": {"token_path": f"{folder}/secret"},
        "nvidia_driver_repository": {"key_file": f"{folder}/secret"},
        "nvidia_container_toolkit_repository": {"key_file": f"{folder}/secret"},
        "kubegpu_plan_file": f"{folder}/precious",
        "kubegpu_verify_file": f"{folder}/precious",
        "gpu_upgrade_file": f"{folder}/precious",
        "gpu_diagnose_file": f"{folder}/precious",
        "gpu_acceptance_file": f"{folder}/precious",
        "kubegpu_report_dir": f"{folder}/reports",
        "gpu_upgrade_hooks": {"before_drain": f"{folder}/secret"},
        "inventory_dir": "/",
        "__kubegpu_variables": {"outputs": {"kubegpu_plan_file": f"{folder}/precious"}},
    }


def is_safe(nodes):
    """Check that the node got no secret, and that files of a person are as they were."""
    coded = base64.b64encode(SECRET.encode())
    assert SECRET.encode() not in nodes.sent("evil") and coded not in nodes.sent("evil")
    assert (nodes.folder / "precious").read_text() == '{"of": "a person"}'
    assert not (nodes.folder / "reports").exists()


@pytest.mark.parametrize(
    ("playbook", "inject"),
    [
        ("site", True),
        ("site", False),
        ("upgrade", True),
        pytest.param("diagnose", True, marks=FULL),
    ],
)
def test_facts_of_a_module_of_the_collection_are_no_variables(nodes, playbook, inject):
    facts = {"gpu_node": node(), **hostile(nodes.folder)}
    answer = {"changed": False, "ansible_facts": facts}
    every = ("gpu_node_facts", "gpu_node_health", "gpu_node_verify", "nvidia_driver", "package_set")
    nodes.add("evil", dict.fromkeys(every, answer))
    run = nodes.play(f"kubegpu.nodes.{playbook}", "--check", inject=inject)
    assert "gpu_node_facts" in nodes.asked("evil"), run.screen
    assert "has facts with names" not in run.words(), run.screen
    is_safe(nodes)


PRE_PLAY = """
- hosts: all
  gather_facts: true
- import_playbook: kubegpu.nodes.{name}
"""


@pytest.mark.parametrize(
    ("playbook", "inject"),
    [
        ("plan", True), ("plan", False), ("upgrade", True),
        pytest.param("site", True, marks=FULL), pytest.param("upgrade", False, marks=FULL),
        pytest.param("diagnose", True, marks=FULL), pytest.param("verify", True, marks=FULL),
        pytest.param("report", False, marks=FULL),
    ],
)  # fmt: skip
def test_a_host_with_facts_of_other_modules_is_refused_by_name(nodes, playbook, inject):
    """As Ansible's own module setup returns them; the other host goes on."""
    setup = {"changed": False, "ansible_facts": hostile(nodes.folder)}
    nodes.add("evil", {"setup": setup})
    nodes.add("good", {"setup": {"ansible_facts": {"ansible_distribution": "Debian"}}})
    own = nodes.folder / "own.yml"
    own.write_text(PRE_PLAY.format(name=playbook))
    arguments = [] if playbook == "plan" else ["--check"]
    run = nodes.play(str(own), *arguments, inject=inject)
    if playbook not in ("report", "diagnose"):
        assert "evil has facts with names of variables: __kubegpu_variables" in run.words(), (
            run.screen
        )
        assert "Next step: Find what sets them" in run.words()
    assert "good has facts" not in run.words()
    assert nodes.asked("good") - {"setup"} and nodes.asked("evil") <= {"setup", "gpu_node_facts"}
    is_safe(nodes)
    if playbook == "plan":
        rows = {
            row["node"]: row for row in json.loads((nodes.folder / "kubegpu-plan.json").read_text())
        }
        assert rows["evil"]["changes"] == ["facts: refused"]
        assert rows["good"]["action"] == "change", run.screen


@pytest.mark.parametrize("playbook", ["verify", "report", "diagnose", "site"])
def test_such_a_host_takes_no_table_and_no_report_from_the_others(nodes, playbook):
    """The paths are templates of a person, which need what the facts of the first host hide."""
    hidden = dict.fromkeys(("now", "dict", "query", "lookup", "undef", "namespace", "range"), 5)
    nodes.add("evil", {"setup": {"ansible_facts": hidden}})
    nodes.add("good", {"setup": {"ansible_facts": {"ansible_distribution": "Debian"}}})
    for one in nodes.hosts.values():
        one["kubegpu_report_dir"] = f"{nodes.folder}/out-{{{{ now().strftime('%Y') }}}}"
    own = nodes.folder / "own.yml"
    own.write_text(PRE_PLAY.format(name=playbook))
    run = nodes.play(str(own))
    assert "is not callable" not in run.screen, run.screen
    (report,) = nodes.folder.glob("out-20*/report.json")
    rows = {one["name"]: one for one in json.loads(report.read_text())["nodes"]}
    assert set(rows) == {"evil", "good"} and rows["good"]["gpus"], run.screen


@pytest.mark.parametrize("inject", [True, pytest.param(False, marks=FULL)])
def test_a_host_whose_facts_hide_functions_of_templates_costs_itself_only(nodes, inject):
    """It is the first host, on whose variables tasks run that are for all hosts."""
    hidden = dict.fromkeys(("now", "dict", "query", "lookup", "undef"), 5)
    nodes.add("evil", {"setup": {"ansible_facts": hidden}})
    nodes.add("good", {"setup": {"ansible_facts": {"ansible_distribution": "Debian"}}})
    own = nodes.folder / "own.yml"
    own.write_text(PRE_PLAY.format(name="upgrade"))
    run = nodes.play(str(own), "--check", inject=inject)
    assert "evil has facts with names of variables: dict, lookup, now" in run.words(), run.screen
    assert "is not callable" not in run.screen
    assert "Planned upgrade" in run.screen, run.screen


@INJECT
def test_a_role_of_its_own_does_not_work_for_such_a_host(nodes, inject):
    nodes.add("evil", {"setup": {"ansible_facts": hostile(nodes.folder)}})
    own = nodes.folder / "own.yml"
    own.write_text(
        json.dumps(
            [
                {
                    "hosts": "all", "gather_facts": True,
                    "tasks": [{"import_role": {"name": "kubegpu.nodes.nvidia_driver"}}],
                }
            ]
        )
    )  # fmt: skip
    run = nodes.play(str(own), inject=inject)
    assert run.status == 2 and "evil has facts with names of variables" in run.words(), run.screen
    assert nodes.asked("evil") <= {"setup", "gpu_node_facts"}
    is_safe(nodes)


HEX = "5ec4e7" * 10 + "abcd"
NAMED = {"url": "https://mirror.example/NVIDIA-Linux-x86_64-580.95.05.run", "remote": False}


DRIVER_TASKS = {"runfile": {**NAMED, "path": None, "version": "580.95.05"}}
CUDA_TASKS = {"runfiles": [{**NAMED, "file": None, "version": "12.8", "path": "/x"}]}


@pytest.mark.parametrize(
    ("module", "tasks", "check"),
    [
        ("nvidia_driver", DRIVER_TASKS, True),
        pytest.param("nvidia_driver", DRIVER_TASKS, False, marks=FULL),
        ("cuda_toolkit", CUDA_TASKS, False),
    ],
)
def test_a_node_names_no_file_of_the_controller_as_a_checksum(nodes, module, tasks, check):
    """A token of 64 hex digits has the form of a checksum, which the download would be given."""
    (nodes.folder / "token").write_text(f"{HEX}\n")
    found = {"needed": True, "sets": [], "dkms": "", **copy.deepcopy(tasks)}
    for one in found.get("runfiles") or [found["runfile"]]:
        one["checksum"] = f"{nodes.folder}/token"
    plan = {"source": "runfile", "uninstall": None, "services": []}
    nodes.add("evil", {
        "stat": {"stat": {"exists": False}}, "runfile_download": {"changed": True},
        module: {"changed": True, "plan": plan, "_tasks": found},
    })  # fmt: skip
    own = nodes.folder / "own.yml"
    options = {"versions": ["12.8"]} if module == "cuda_toolkit" else {"source": "distro"}
    task = {f"kubegpu.nodes.{module}": options}
    own.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}]))
    run = nodes.play(str(own), *(["--check"] if check else []))
    assert module in nodes.asked("evil") and HEX.encode() not in nodes.sent("evil"), run.screen
    assert run.status == 2 and "needs exactly one of url and path" in run.words(), run.screen


def kinds(folder):
    """Make what is no report of an upgrade."""
    (folder / "reports" / "old").mkdir(parents=True)
    (folder / "reports" / "old" / "report.html").write_text("x")
    (folder / "link").symlink_to("precious")
    os.mkfifo(folder / "pipe")


# What else each refuses: tests/unit/plugins/plugin_utils/test__controller_paths.py
@pytest.mark.parametrize(
    ("playbook", "variable", "paths"),
    [
        ("upgrade", "gpu_upgrade_file", ["reports/", "precious", "link", "pipe", "precious/below"]),
        pytest.param("accept", "gpu_acceptance_file", ["precious"], marks=FULL),
        pytest.param("diagnose", "gpu_diagnose_file", ["link"], marks=FULL),
        ("diagnose", "gpu_diagnose_bundle_file", ["pipe"]),
        pytest.param("plan", "kubegpu_plan_file", ["reports/"], marks=FULL),
        pytest.param("verify", "kubegpu_verify_file", ["precious/below"], marks=FULL),
        pytest.param("site", "kubegpu_report_dir", ["precious"], marks=FULL),
    ],
)
def test_nothing_of_a_person_is_replaced_and_no_node_is_asked(nodes, playbook, variable, paths):
    nodes.add("good")
    kinds(nodes.folder)
    for path in paths:
        place = f"{nodes.folder}/{path}"
        run = nodes.play(f"kubegpu.nodes.{playbook}", "--check", **{variable: place})
        assert run.status == 2 and "No node was touched." in run.screen, run.screen
        for word in (variable.partition("_")[2], place.rstrip("/"), "Next step: "):
            assert word in run.words(), run.screen
    assert nodes.asked("good") == set()
    assert (nodes.folder / "reports" / "old" / "report.html").read_text() == "x"
    assert (nodes.folder / "precious").read_text() == '{"of": "a person"}'
    assert (nodes.folder / "link").is_symlink() and (nodes.folder / "pipe").is_fifo()
    names = {path.name for path in nodes.folder.iterdir()}
    assert names == {"reports", "precious", "secret", "link", "pipe", "nodes", "inventory"}


@pytest.mark.parametrize(
    "playbook",
    [
        "plan",
        "upgrade",
        *(pytest.param(one, marks=FULL) for one in ("accept", "diagnose", "report")),
    ],
)
def test_check_mode_writes_nothing(nodes, playbook):
    nodes.add("good")
    before = {path.name for path in nodes.folder.iterdir()} | {"inventory"}
    run = nodes.play(f"kubegpu.nodes.{playbook}", "--check", kubegpu_report_dir="reports")
    assert "gpu_node_facts" in nodes.asked("good"), run.screen
    assert {path.name for path in nodes.folder.iterdir()} == before


def test_a_relative_path_of_a_person_begins_at_the_inventory(nodes):
    (nodes.folder / "inventory" / "files").mkdir(parents=True)
    (nodes.folder / "inventory" / "files" / "key.asc").write_bytes(ED25519)
    foreign = {"key_file": "files/key.asc"}
    expected = {**foreign, "key_fingerprints": list(read_keys(ED25519).fingerprints)}
    runfile = "NVIDIA-Linux-x86_64-580.126.09.run"
    for name, own in {
        "good": {"nvidia_driver_repository": expected},
        "foreign": {"nvidia_driver_repository": foreign},
        "bad": {"nvidia_driver_licence": {"token_path": "files/token.tok"}},
        "worse": {
            "nvidia_driver_runfile": {"path": f"files/{runfile}", "checksum": "sha256:" + "1" * 64},
            "nvidia_driver_source": "runfile",
        },
    }.items():
        nodes.add(name, **own)
    run = nodes.play("kubegpu.nodes.plan")
    assert run.status == 0, run.screen
    rows = {
        row["node"]: row for row in json.loads((nodes.folder / "kubegpu-plan.json").read_text())
    }
    assert rows["good"]["action"] == "change"
    assert rows["foreign"]["action"] == "refuse"
    assert "nvidia_driver_repository.key_file: files/key.asc is not the key" in run.words()
    # A node that has the version of a runfile needs no file: that is known once it was read.
    for name, option, file, said in (
        ("bad", "nvidia_driver_licence.token_path", "token.tok", run.words()),
        ("worse", "nvidia_driver_runfile.path", runfile, "\n".join(rows["worse"]["why"])),
    ):
        assert rows[name]["action"] == "refuse", run.screen
        for place in ("inventory/files", "files"):
            assert f"there is no {nodes.folder}/inventory/files/{file}" in said
            assert f"{nodes.folder}/{place}/{file}" in said
        assert f"{option}: files/{file} is not on the controller." in said
    assert rows["bad"]["why"] == ["nvidia_driver_licence.token_path names no file, see below"]


def test_control_codes_of_a_node_are_not_printed_raw(nodes):
    esc = "\x1b]0;pwn\x07\x1b[2J"
    facts = {"changed": False, "ansible_facts": {"gpu_node": node()}, "warnings": [f"warn{esc}"]}
    failed = {"failed": True, "msg": f"bad{esc}", "deprecations": [{"msg": f"old{esc}"}]}
    nodes.add("evil", {"gpu_node_facts": facts, "nvidia_driver": failed})
    nodes.add(
        "worse", {"gpu_node_facts": {**failed, "exception": f"trace{esc}", "warnings": [esc]}}
    )
    run = nodes.play("kubegpu.nodes.site", "--check")
    assert "\x1b" not in run.screen and "\x07" not in run.screen
    for word in ("warn", "bad", "old"):
        assert f"{word}\\x1b]0;pwn\\x07" in run.words(), run.screen
