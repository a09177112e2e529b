# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``ansible-playbook kubegpu.nodes.plan`` on the thirteen machines: decisions, refusals, table."""

from __future__ import annotations

import pytest

from tests.integration.plans import machines, playbook
from tests.unit.fixtures.machines import MACHINES

REFUSED = ("t4-vgpu", "a10-2q", "k80", "v100-b200-mixed")
OTHERS = ("mi300x8", "intel-max", "none")


@pytest.mark.parametrize(
    ("name", "branch", "kernel_module", "source"),
    [
        ("p4", "580", "proprietary", "nvidia"),
        ("v100x4", "580", "proprietary", "distro"),
        ("a100x8", "580", "open", "distro"),
        ("h100x8", "580", "open", "distro"),
        ("h200x8", "580", "open", "distro"),
        # The archive has no IMEX, as far as is known.
        ("gb200x4", "580", "open", "distro"),
    ],
)
def test_decision_with_its_reasons(thirteen, name, branch, kernel_module, source):
    row = thirteen.rows[name]
    driver = row["driver"]
    assert row["action"] == "change" and driver["action"] == "install"
    assert (driver["branch"], driver["kernel_module"], driver["source"]) == (
        branch,
        kernel_module,
        source,
    )
    assert driver["reasons"] and driver["packages"] and driver["change"]
    assert len(row["changes"]) == len(row["why"])
    assert all(row["why"])
    # The toolkit comes after it, with a CDI specification for the driver that is to come.
    assert [step["part"] for step in row["steps"]][-1] == "toolkit"
    assert any(step["step"] == "cdi" and branch in step["detail"] for step in row["steps"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("t4-vgpu", ("GRID T4", "virtual GPU", "460.16", "r460_00", "460.16-grid.run")),
        ("a10-2q", ("A10", "virtual GPU", "535.129.03", "r535_00", "535.129.03-grid.run")),
        ("k80", ("Tesla K80", "kepler", "470", "NVIDIA-Linux-x86_64-470.256.02.run")),
        ("v100-b200-mixed", ("V100", "0000:15:00.0", "B200", "0000:8c:00.0", "580")),
    ],
)
def test_refusal_says_why_and_what_would_do(thirteen, name, words):
    row = thirteen.rows[name]
    assert row["action"] == "refuse"
    driver = row["driver"]
    assert driver["action"] == "refuse" and not driver["change"] and not driver["packages"]
    text = "\n".join(driver["reasons"])
    assert all(word in text for word in words), text
    assert "Next step: " in text
    assert row["changes"][0] == "driver: refused" and row["why"][0] == text


def test_a_refusal_does_not_hide_the_other_parts(thirteen):
    row = thirteen.rows["t4-vgpu"]
    assert "toolkit packages: install toolkit 1.20.1-1" in row["changes"]
    assert any("site stops this node" in text for text in row["warnings"])
    # A node of another package family.
    changes = thirteen.rows["k80"]["changes"]
    assert changes[0] == "driver: refused"
    assert "toolkit packages: install toolkit 1.20.1-1" in changes


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_is_planned_without_an_nvidia_gpu(thirteen, name):
    row = thirteen.rows[name]
    assert row["action"] == "none" and row["changes"] == [] and "driver" not in row


def test_all_machines_are_in_the_table_and_nothing_is_changed(thirteen):
    assert tuple(sorted(thirteen.rows)) == tuple(sorted(machines.THIRTEEN))
    assert "changed=1" not in thirteen.screen
    first = [line.split("  ")[0] for line in thirteen.table()]
    assert all(name in first for name in machines.THIRTEEN)


@pytest.mark.full("120", why="another width of the screen, which unit tests of the table vary too")
@pytest.mark.parametrize("width", [100, 120])
def test_table_fits_the_screen_and_holds_every_word(inventory, thirteen, width):
    lines = thirteen.table() if width == 100 else playbook.run(inventory, width=width).table()
    assert max(len(line) for line in lines) <= width
    text = "\n".join(lines)
    for name in REFUSED:
        # Wrapped, every word of a refusal stands in the column of the reasons.
        for word in " ".join(thirteen.rows[name]["driver"]["reasons"]).split():
            assert word in text or len(word) > 36, word


@pytest.mark.full("teardown", "verify", "diagnose", why="another playbook")
@pytest.mark.parametrize("name", ["site", "teardown", "verify", "diagnose", "report"])
def test_what_works_on_the_machine_refuses_a_tree(inventory, name):
    run = playbook.run(inventory, f"kubegpu.nodes.{name}", "--limit", "p4,none")
    assert run.status != 0
    assert "kubegpu_root is" in run.screen and "Next step" in run.screen
    assert "Finalization of task args" not in run.screen


@pytest.mark.full(why="another variable than test_wishes_are_variables_of_a_host")
def test_driver_can_be_left_out(plan):
    rows = plan({"p4": MACHINES["p4"]}, nvidia_driver_enabled=False)
    assert "driver" not in rows["p4"]
    assert all(step["part"] == "toolkit" for step in rows["p4"]["steps"])


def test_wishes_are_variables_of_a_host(plan):
    own = {"one": MACHINES["a100x8"], "two": MACHINES["a100x8"]}
    rows = plan(own, {"two": {"nvidia_driver_branch": 595, "nvidia_driver_source": "nvidia"}})
    assert rows["one"]["driver"]["branch"] == "580"
    assert rows["two"]["driver"]["branch"] == "595"
    assert rows["two"]["driver"]["pinning"]


@pytest.mark.full(why="another variable than test_wishes_are_variables_of_a_host")
def test_a_new_branch_is_data(plan):
    rows = plan(
        {"h100": MACHINES["h100x8"]},
        nvidia_driver_branches={"999": {"kind": "ltsb", "end": "2099-01-01", "modules": ["open"]}},
        nvidia_driver_branch="999",
        nvidia_driver_source="nvidia",
    )
    assert rows["h100"]["driver"]["branch"] == "999"
    assert "2099-01-01" in " ".join(rows["h100"]["driver"]["reasons"])


def test_password_of_a_mirror_is_nowhere(plan):
    url = "https://me:geheim17@mirror.example/cuda/{distribution}/{architecture}"
    rows = plan({"p4": MACHINES["p4"]}, nvidia_driver_repository={"url": url})
    repository = rows["p4"]["driver"]["repository"]
    assert repository["url"] == "https://***@mirror.example/cuda/debian12/x86_64"
    assert repository["key_url"].startswith("https://***@mirror.example/")
    assert "geheim17" not in str(rows)


@pytest.mark.full(why="another machine than the thirteen")
def test_a_kept_driver_says_why(plan):
    row = plan({"p4": machines.by_runfile(MACHINES["p4"], "580.95.05")})["p4"]
    assert row["driver"]["reasons"][0] in row["why"]
    assert not [step for step in row["steps"] if step["part"] == "driver"]


@pytest.mark.full(why="a playbook of the user's own around the plan of one machine")
def test_a_variable_that_import_playbook_passes_asks_for_its_part(tmp_path):
    """It is not among the variables of the host, and can be a template of them."""
    own = tmp_path / "own.yml"
    own.write_text(
        "- import_playbook: kubegpu.nodes.plan\n"
        "  vars: {cuda_toolkit_versions: '{{ [site_cuda] }}'}\n"
    )
    variables = {"p4": {"site_cuda": "12.9"}}
    run = playbook.run(machines.write(tmp_path, {"p4": MACHINES["p4"]}, variables), str(own))
    assert run.status == 0, run.screen
    assert run.rows["p4"]["cuda"]["action"] == "install"


@pytest.mark.full(why="unit tests of CUDA's plan have which driver and which repository count")
def test_cuda_is_planned_for_the_driver_that_is_to_come(plan):
    """One after the other: the driver brings the repository that CUDA needs too."""
    own = {"p4": MACHINES["p4"], "v100x4": MACHINES["v100x4"], "t4-vgpu": MACHINES["t4-vgpu"]}
    rows = plan(own, {"v100x4": {"cuda_toolkit_versions": ["13.0"]}})
    assert "cuda" not in rows["p4"], "it is planned where it is requested"
    # 13.x left Volta out: the driver and the toolkit are still planned beside this refusal.
    refused = rows["v100x4"]
    assert refused["action"] == "refuse" and "cuda: refused" in refused["changes"]
    assert refused["driver"]["action"] == "install" and refused["cuda"]["action"] == "refuse"
    assert any("stops this node at cuda" in text for text in refused["warnings"])

    rows = plan(own, cuda_toolkit_versions=["12.9"])
    row = rows["p4"]
    assert row["cuda"]["action"] == "install" and row["cuda"]["repository"] is None
    assert [step["part"] for step in row["steps"]] == sorted(
        (step["part"] for step in row["steps"]), key=("driver", "cuda", "toolkit").index
    )
    assert not any("No NVIDIA driver" in text for text in row["warnings"])


@pytest.mark.parametrize(
    ("value", "failed"),
    [(None, []), ("never", []), ("refuse", ["k80"]), ("change", ["k80", "p4"])],
)
def test_the_exit_status_shows_what_is_asked_for(tmp_path, value, failed):
    """A refused plan ended with 0: nothing in a pipeline saw it."""
    names = ("k80", "p4", "none")
    inventory = machines.write(tmp_path, {name: MACHINES[name] for name in names})
    run = playbook.run(inventory, **({} if value is None else {"kubegpu_plan_fail_on": value}))
    assert run.status == (2 if failed else 0), run.screen
    assert {name: run.rows[name]["action"] for name in names} == {
        "k80": "refuse", "p4": "change", "none": "none",
    }  # fmt: skip
    lost = [name for name in names if f"fatal: [{name}]" in run.screen]
    assert sorted(lost) == failed
    text = " ".join(run.screen.split())
    assert ("The plan refuses this host: driver: refused" in text) is bool(failed)
    assert ("The plan has changes for this host" in text) is ("p4" in failed)


def test_a_host_can_be_left_out_of_what_fails(tmp_path):
    inventory = machines.write(
        tmp_path,
        {name: MACHINES[name] for name in ("k80", "v100-b200-mixed")},
        {"k80": {"kubegpu_plan_fail_on": "refuse"}},
    )
    run = playbook.run(inventory)
    assert run.status == 2 and "fatal: [k80]" in run.screen
    assert "fatal: [v100-b200-mixed]" not in run.screen
    wrong = playbook.run(inventory, kubegpu_plan_fail_on="always")
    assert wrong.status == 2 and "kubegpu_plan_fail_on" in wrong.screen
    assert "never, refuse, change" in wrong.screen
