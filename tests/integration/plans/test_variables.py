# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``kubegpu.nodes.plan`` says of a misspelt variable and of a wrong value."""

from __future__ import annotations

import json

import pytest

from tests.integration.plans import machines, playbook
from tests.unit.fixtures.machines import MACHINES

FLEET = {"a": MACHINES["p4"], "b": MACHINES["p4"], "c": MACHINES["v100x4"], "cpu": MACHINES["none"]}
MISSPELT = "nvidia_driver_kernel_modules"


def plan(tmp_path, everywhere=None, own=None, name="kubegpu.nodes.plan", **variables):
    hosts = {host: {**(everywhere or {}), **(own or {}).get(host, {})} for host in FLEET}
    return playbook.run(machines.write(tmp_path, FLEET, hosts), name, **variables)


def words(run):
    return " ".join(run.screen.split())


def test_a_misspelt_variable_is_named_once_with_the_nearest_name(tmp_path):
    run = plan(tmp_path, {MISSPELT: "open"}, {"c": {"kubegpu_seriall": 1}})
    assert run.status == 0, run.screen
    assert run.screen.count(MISSPELT) == 1
    said = words(run)
    assert (
        f"{MISSPELT} is not a variable of this collection, and is set for a and 3 more hosts. "
        "Did you mean "
        "nvidia_driver_kernel_module?" in said
    )
    assert (
        "kubegpu_seriall is not a variable of this collection, and is set for c. Did you mean "
        "kubegpu_serial?" in said
    )
    assert {row["action"] for row in run.rows.values()} == {"change", "none"}


def test_variables_of_a_cluster_without_one_are_said_once(tmp_path):
    run = plan(tmp_path, {"nvidia_device_plugin_enabled": True})
    assert run.status == 0, run.screen
    assert words(run).count("and kubegpu_kube for no host") == 1


@pytest.mark.parametrize("name", ["kubegpu_kub", "kubegpu_kube"])
def test_a_connection_that_names_no_cluster_ends_the_run(tmp_path, name):
    """Otherwise the hosts would get what hosts without Kubernetes get."""
    run = plan(tmp_path, own={"b": {name: {"context": "testbed"}}})
    assert run.status == 2 and "Read the node]" not in run.screen
    if name == "kubegpu_kube":
        assert "kubegpu_kube has context, but neither kubeconfig nor host" in words(run)
        return
    assert "Did you mean kubegpu_kube? Without it, hosts of a cluster" in words(run)
    run = plan(tmp_path, own={"b": {name: {}}}, kubegpu_unknown_variables="ignore")
    assert run.status == 0, run.screen


@pytest.mark.parametrize("word", ["fail", "ignore"])
@pytest.mark.full("ignore", why="the other word")
def test_what_follows_from_a_name_that_nothing_reads(tmp_path, word):
    run = plan(tmp_path, own={"b": {MISSPELT: "open"}}, kubegpu_unknown_variables=word)
    if word == "ignore":
        assert run.status == 0 and MISSPELT not in run.screen
        return
    assert run.status == 2 and "No node was touched." in run.screen
    # It stops before any node is asked.
    assert "Read the node]" not in run.screen and run.rows == {}
    assert "Did you mean nvidia_driver_kernel_module?" in words(run)


def test_a_wrong_value_is_a_refusal_in_the_table_and_is_said_once(tmp_path):
    run = plan(
        tmp_path,
        {"nvidia_driver_source": "foo"},
        {"c": {"nvidia_driver_source": "auto", "nvidia_driver_branch": "abc"}},
    )
    assert run.status == 0, run.screen
    rows = run.rows
    assert {name: row["action"] for name, row in rows.items()} == {
        **dict.fromkeys("abc", "refuse"),
        # Of no account where no driver is to be.
        "cpu": "none",
    }
    assert rows["a"]["driver"]["reasons"][0].startswith("nvidia_driver_source has to be one of")
    assert "nvidia_driver_branch has to be auto or a number" in rows["c"]["driver"]["reasons"][0]
    table = "\n".join(run.table())
    assert table.count("has to be one of auto, distro, nvidia, runfile") == 1
    assert "a, b: nvidia_driver_source has to be one of" in table
    assert "c: nvidia_driver_branch has to be" in table
    assert "nvidia_driver_source has a wrong value, see below" in " ".join(table.split())
    # No trace of Ansible's, and no failed host.
    assert "fatal:" not in run.screen and "Traceback" not in run.screen
    assert "failed=1" not in run.screen


@pytest.mark.full(why="wrong values of more than one host, as in test_a_wrong_value_is_a_...")
def test_a_value_that_is_wrong_for_all_names_no_host(tmp_path):
    run = plan(
        tmp_path,
        nvidia_driver_hold="perhaps",
        nvidia_container_toolkit_settings=["x"],
        nvidia_container_toolkit_repository={"key_ulr": "https://mirror.example/key"},
    )
    table = "\n".join(run.table())
    said = (
        "nvidia_container_toolkit_repository.key_ulr is not a variable of this collection. "
        "Did you mean"
    )
    assert f"{said} nvidia_container_toolkit_repository.key_url?" in " ".join(table.split())
    assert table.count("nvidia_driver_hold has to be true or false") == 1
    assert table.count("nvidia_container_toolkit_settings has to be a mapping") == 1
    assert {*run.rows["a"]["changes"]} == {"driver: refused", "toolkit: refused"}


@pytest.mark.full(why="another place of the variable")
def test_a_value_of_the_play_is_judged_for_each_host(tmp_path):
    """It can be made of a host's variable, and a host's variable of the play's."""
    mine = tmp_path / "mine.yml"
    made = {"nvidia_driver_source": "{{ source }}", "branch": "abc"}
    mine.write_text(json.dumps([{"import_playbook": "kubegpu.nodes.plan", "vars": made}]))
    own = {"a": {"source": "foo"}, "b": {"nvidia_driver_branch": "{{ branch }}"}}
    run = plan(tmp_path, {"source": "auto"}, own, name=str(mine))
    assert run.status == 0, run.screen
    reasons = {
        name: (row.get("driver") or {}).get("reasons", [""])[0] for name, row in run.rows.items()
    }
    assert reasons["a"].startswith("nvidia_driver_source has to be one of")
    assert reasons["b"].startswith("nvidia_driver_branch has to be auto or a number")
    assert run.rows["c"]["action"] != "refuse"


@pytest.mark.full(why="unit tests of the plan filters have it")
def test_a_value_made_of_a_role_default_is_refused_by_the_plan(tmp_path):
    """It is worked out only where the role is, and still no host fails."""
    run = plan(tmp_path, {"nvidia_driver_version": "{{ nvidia_driver_branch }}.x"})
    assert run.status == 0 and "fatal:" not in run.screen, run.screen
    row = run.rows["a"]
    assert row["action"] == "refuse" and row["changes"][0] == "driver: refused"
    assert row["why"][0].startswith("nvidia_driver_version has to be")
    # The other parts are planned as they are.
    assert any(step["part"] == "toolkit" for step in row["steps"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"kubegpu_serial": "abc"},
        {"kubegpu_max_fail_percentage": 200},
        {"kubegpu_become": "maybe"},
        {"kubegpu_kube": {"token": "geheim17", "kubeconifg": "/root/config"}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_wrong_value_of_a_playbook_stops_before_any_node_is_asked(tmp_path, wrong):
    run = plan(tmp_path, wrong)
    (name,) = wrong
    said = f"{name} has to be" if name != "kubegpu_kube" else "mean kubegpu_kube.kubeconfig?"
    assert run.status == 2 and said in words(run), run.screen
    assert "geheim17" not in run.screen
    assert "No node was touched." in run.screen and "Read the node]" not in run.screen


def test_what_switches_a_part_off_comes_before_what_is_wrong_with_it(tmp_path):
    run = plan(
        tmp_path,
        own={
            "a": {"nvidia_driver_enabled": False, "nvidia_driver_version": "{{ of_the_site }}"},
            "b": {
                "nvidia_driver_enabled": False,
                "nvidia_driver_licence": {"token_path": "files/none.tok"},
            },
        },
    )
    rows = run.rows
    assert [rows[name]["action"] for name in "abc"] == ["change", "change", "change"], run.screen


def test_a_token_that_cannot_be_read_costs_its_host_only(tmp_path):
    token = tmp_path / "token.tok"
    token.write_text("$ANSIBLE_VAULT;1.1;AES256\n6162\n")
    run = plan(tmp_path, own={"b": {"nvidia_driver_licence": {"token_path": str(token)}}})
    assert run.status == 0, run.screen
    assert [run.rows[name]["action"] for name in "abc"] == ["change", "refuse", "change"]
    assert "the token cannot be read" in " ".join(run.rows["b"]["driver"]["reasons"])


def test_a_part_that_a_template_enables_is_planned(tmp_path):
    fleet = {"mi300": MACHINES["mi300x8"]}
    own = {"mi300": {"amd_driver_enabled": "{{ 1 == 1 }}"}}
    run = playbook.run(machines.write(tmp_path, fleet, own), "kubegpu.nodes.plan")
    assert "AMD driver" in run.rows["mi300"], run.screen


@pytest.mark.parametrize(
    ("hosts", "variables", "said"),
    [
        ("", {}, "The inventory has no host. Nothing was done."),
        ("gpu1\n", {"kubegpu_hosts": "gpu2"}, "has no host that kubegpu_hosts (gpu2) selects."),
        # The controller is not taken instead.
        (
            "localhost\n",
            {"kubegpu_hosts": "gpu2"},
            "has no host that kubegpu_hosts (gpu2) selects.",
        ),
    ],
)
def test_a_run_without_a_host_fails(tmp_path, hosts, variables, said):
    """It ended with 0 after eleven plays without a host."""
    inventory = tmp_path / "inventory"
    inventory.write_text(hosts, encoding="utf-8")
    run = playbook.run(inventory, **variables)
    assert run.status == 2 and said in words(run) and "Next step: " in run.screen, run.screen
    assert "no hosts matched" not in run.screen


def test_a_connection_that_fails_is_said_in_the_table_and_once_at_the_end(tmp_path):
    """It was shown with lines of the playbook, as a result, in the table and as the last word."""
    inventory = tmp_path / "inventory"
    inventory.write_text(
        "gone1 ansible_connection=ssh ansible_host=127.0.0.1 ansible_port=1 ansible_user=ada\n",
        encoding="utf-8",
    )
    run = playbook.run(inventory)
    assert run.status == 4 and "Hosts that could not be read" in run.screen, run.screen
    assert words(run).count("Connection refused") == 2 and "Origin: " not in run.screen
    last = [line for line in run.screen.splitlines() if line.startswith("fatal: ")]
    assert len(last) == 1 and "(The table above has the next step.)" in last[0]
