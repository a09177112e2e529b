# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node with NVSwitches or NVLink of the fifth generation needs beside its driver."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver import components
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import config_files, fabric
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.installed import is_locked
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.packages import (
    LOCK_PATTERNS,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import plan_driver
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.fabric import is_component
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.package_names import is_driver
from tests.unit.fixtures.driver_cases import facts, request

EIGHT = "+".join(["{}"] * 8)
FIRST, SECOND = "580.95.05", "580.178.04"


def machine(gpus, on="u24", stands="-", *, switches=0, bridges=None, **packages):
    given = facts(gpus, on, stands)
    given["nvswitches"] = switches
    given["nvswitch_bridges"] = bridges
    given["driver"]["packages"].update(packages)
    return given


def eight(word):
    return EIGHT.replace("{}", word)


def plan_of(given, requested="-", **options):
    return plan_driver(given, *read_options({**request(requested), **options}))


def parts(plan):
    found = {**plan.packages, **plan.optional_packages}
    return {name: text for name, text in found.items() if is_component(name) or name == "nvlsm"}


GOLDEN = [
    # gpus, system, switches, bridges, request; source, packages, services
    ("A100", "u24", 6, None, "580", "distro",
     {"nvidia-fabricmanager-580": "580.*", "libnvidia-nscq-580": "580.*"}, True),
    ("H100", "u24", 4, None, "595", "distro",
     {"nvidia-fabricmanager-595": "595.*", "libnvidia-nscq-595": "595.*"}, True),
    ("H100", "u24", 4, None, "nvidia 580.95.05", "nvidia",
     {"nvidia-fabricmanager": "580.95.05*", "libnvidia-nscq": "580.95.05*"}, True),
    ("A100", "u22", 6, None, "nvidia 595.58.03", "nvidia",
     {"nvidia-fabricmanager": "595.58.03*", "libnvidia-nscq": "595.58.03*"}, True),
    ("H100", "d12", 4, None, "580", "nvidia",
     {"nvidia-fabricmanager": "580.*", "libnvidia-nscq": "580.*"}, True),
    ("H100", "d12", 4, None, "575", "nvidia",
     {"nvidia-fabricmanager-575": "575.*", "libnvidia-nscq-575": "575.*"}, True),
    ("B200", "u24", 0, 4, "-", "nvidia",
     {"nvidia-fabricmanager": "580.*", "nvlsm": None, "libnvsdm": "580.*"}, True),
    ("B300", "u24", 0, None, "595", "nvidia",
     {"nvidia-fabricmanager": "595.*", "nvlsm": None, "libnvsdm": "595.*"}, True),
    ("GB200", "u24 arm", 0, None, "-", "distro", {"nvidia-imex-580": "580.*"}, False),
    ("GB200", "u24 arm", 0, None, "nvidia 580", "nvidia", {"nvidia-imex": "580.*"}, False),
    ("GB200", "u24 arm", 0, None, "595", "distro", {"nvidia-imex-595": "595.*"}, False),
    ("H100", "rocky9", 4, None, "580.95.05", "nvidia",
     {"nvidia-fabricmanager": "580.95.05*", "libnvidia-nscq": "580.95.05*"}, True),
    ("H100", "rocky9", 4, None, "570", "nvidia",
     {"nvidia-fabric-manager": "570.*", "libnvidia-nscq-570": "570.*"}, True),
    ("B200", "rocky9", 0, 4, "570", "nvidia",
     {"nvidia-fabric-manager": "570.*", "nvlsm": None, "libnvsdm-570": "570.*"}, True),
]  # fmt: skip


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row[0]} {row[1]} {row[4]}")
def test_plans(row):
    gpus, on, switches, bridges, requested, source, packages, runs = row
    plan = plan_of(machine(eight(gpus), on, switches=switches, bridges=bridges), requested)
    assert plan.action == "install", plan.reasons
    assert plan.source == source, plan.reasons
    assert parts(plan) == packages
    assert (components.MANAGER_UNIT in plan.services) is runs
    assert components.IMEX_UNIT not in plan.services
    optional = {name for name in packages if name.startswith("libnvsdm")}
    assert packages.keys() - optional <= plan.packages.keys()
    assert optional <= plan.optional_packages.keys()
    for name in packages:
        assert is_driver(name) and is_locked(name, LOCK_PATTERNS)
    bridged = bool(bridges) or gpus in ("B200", "B300")
    assert (components.BRIDGE_MODULE in plan.files[config_files.MODULES]) is bridged
    assert ("infiniband-diags" in plan.optional_packages) is bridged


@pytest.mark.parametrize(
    ("gpus", "switches", "bridges"),
    [("H100+H100", 0, None), ("T4", 0, None), ("A10v", 4, None), ("L40S", 0, 0), ("H100", 0, 0)],
)
def test_nothing_is_needed_without_switches(gpus, switches, bridges):
    wanted = fabric.needs(machine(gpus, switches=switches, bridges=bridges))
    assert wanted == fabric.Needs()


def test_a_virtual_machine_without_the_bridges():
    plan = plan_of(machine("B200", bridges=0), "580")
    assert plan.source == "distro" and parts(plan) == {}
    assert any("looked after elsewhere" in text for text in plan.warnings)
    plan = plan_of(machine("B200", bridges=0), "580", fabric="true")
    assert "nvlsm" in plan.packages


def test_the_user_has_the_last_word():
    given = machine(eight("H100"), switches=4)
    assert parts(plan_of(given, fabric="false")) == {}
    plan = plan_of(machine("H100"), fabric=True)
    assert set(parts(plan)) == {"nvidia-fabricmanager-580", "libnvidia-nscq-580"}
    plan = plan_of(machine("GB200", "u24 arm"), imex="false")
    assert parts(plan) == {} and plan.source == "distro"
    with pytest.raises(InputError, match="nvidia_driver_fabric"):
        read_options({"fabric": "perhaps"})
    with pytest.raises(InputError, match="nvidia_driver_imex_nodes"):
        read_options({"imex_nodes": ["10.0.0.1", "two words"]})


def test_imex_runs_where_its_nodes_are_given():
    plan = plan_of(machine("GB200", "u24 arm"), imex_nodes=["10.0.0.1", "10.0.0.2"])
    assert plan.services[components.IMEX_UNIT] == "enabled"
    assert plan.files[config_files.IMEX_NODES].splitlines()[1:] == ["10.0.0.1", "10.0.0.2"]
    plan = plan_of(machine("T4"), imex_nodes=["10.0.0.1"])
    assert config_files.IMEX_NODES not in plan.files and components.IMEX_UNIT not in plan.services


def test_a_source_without_a_part_is_never_silent():
    plan = plan_of(machine(eight("B200"), bridges=4), "distro 580")
    assert plan.source == "distro" and "nvidia-fabricmanager-580" in plan.packages
    said = next(text for text in plan.warnings if "nvlsm" in text)
    assert "nvidia_driver_source: nvidia" in said and "802" in said
    plan = plan_of(machine("H100", switches=4), "run=580.126.09")
    assert any("runfile does not bring" in text for text in plan.warnings)
    assert components.MANAGER_UNIT not in plan.services
    plan = plan_of(machine("H100", "d12", switches=4), "distro")
    assert any("nvidia-fabricmanager" in text for text in plan.warnings)


def settled_node(**changed):
    """An H100 node of ours on which all is as requested, but for what is changed."""
    names = {
        "nvidia-fabricmanager-580": f"{SECOND}-0ubuntu1",
        "libnvidia-nscq-580": f"{SECOND}-0ubuntu1",
        **{name.replace("_", "-"): text for name, text in changed.items()},
    }
    given = machine(eight("H100"), "u24", f"distro {SECOND} open held ours services", switches=4)
    given["driver"]["packages"].update({name: text for name, text in names.items() if text})
    given["driver"]["services"][components.MANAGER_UNIT] = "active"
    plan = plan_of(given, "580")
    given["driver"]["configuration"] = {
        path: config_files.sha256(text) for path, text in plan.files.items()
    }
    return given


def steps(plan):
    return [(step.step, step.action, step.detail) for step in plan.steps]


def test_all_is_well():
    plan = plan_of(settled_node(), "580")
    assert steps(plan) == [] and not plan.change


def test_a_part_of_another_version_is_drift():
    plan = plan_of(settled_node(nvidia_fabricmanager_580=f"{FIRST}-0ubuntu1"), "580")
    assert steps(plan) == [
        ("packages", "install", f"nvidia-fabricmanager-580 {FIRST} next to driver {SECOND}")
    ]
    assert plan.packages["nvidia-fabricmanager-580"] == f"{SECOND}*"
    assert plan.lock["version"] == SECOND and plan.hold


LEFT = {"nvidia-fabricmanager-570": "570.195.03-0ubuntu1"}


@pytest.mark.parametrize("package", ["nvidia-driver-580-server-open", "nvidia-headless-580-open"])
def test_a_part_of_another_branch_goes_where_the_node_needs_parts(package):
    given = settled_node()
    given["driver"]["packages"].update({**LEFT, package: f"{SECOND}-0ubuntu1"})
    plan = plan_of(given, "580")
    # There is no 580 under that name.
    assert steps(plan) == [("packages", "remove", "nvidia-fabricmanager-570")]
    assert plan.obsolete == tuple(LEFT) and not {*LEFT} & {*plan.packages}


@pytest.mark.parametrize("package", ["nvidia-driver-580-server-open", "nvidia-headless-580-open"])
def test_a_left_over_of_another_branch_stays_where_no_part_is_needed(package):
    given = machine("T4", "u24", f"distro {SECOND} open held ours services")
    given["driver"]["packages"][package] = f"{SECOND}-0ubuntu1"
    before = plan_of(given, "580")
    given["driver"]["packages"].update(LEFT)
    plan = plan_of(given, "580")
    assert steps(plan) == steps(before) and plan.obsolete == ()
    assert {name: plan.packages.get(name, text) for name, text in LEFT.items()} == LEFT


def test_a_part_that_was_removed_is_missed():
    plan = plan_of(settled_node(libnvidia_nscq_580=None), "580")
    assert steps(plan) == [("packages", "install", "libnvidia-nscq-580")]
    assert plan.packages["libnvidia-nscq-580"] == f"{SECOND}*"


def test_a_part_that_is_not_held():
    given = settled_node()
    given["driver"]["held"] = False
    given["driver"]["unheld"] = ["nvidia-fabricmanager-580"]
    plan = plan_of(given, "580")
    assert steps(plan) == [("hold", "hold", "nvidia-fabricmanager-580")]


def test_a_service_that_ended():
    given = settled_node()
    given["driver"]["services"][components.MANAGER_UNIT] = "failed"
    plan = plan_of(given, "580")
    assert steps(plan) == [("service", "start", components.MANAGER_UNIT)]


def test_an_upgrade_is_one_set():
    plan = plan_of(settled_node(), "580.190.01")
    assert plan.action == "upgrade"
    wanted = {text for name, text in plan.packages.items() if text}
    assert wanted == {"580.190.01*"}
    assert "nvidia-fabricmanager-580" in plan.packages
    plan = plan_of(settled_node(), "595")
    assert {"nvidia-fabricmanager-580", "libnvidia-nscq-580"} <= set(plan.obsolete)


def test_an_admins_own_set_gets_the_parts_too():
    given = machine(eight("H100"), "u24", f"distro {SECOND} open", switches=4)
    driver = given["driver"]
    driver["packages"] = {
        "nvidia-driver-580-server-open": f"{SECOND}-0ubuntu1",
        "nvidia-imex-580": f"{FIRST}-0ubuntu1",
    }
    driver["unheld"] = list(driver["packages"])
    plan = plan_of(given, "580")
    assert plan.packages["nvidia-fabricmanager-580"] == f"{SECOND}*"
    assert plan.packages["nvidia-imex-580"] == f"{SECOND}*"
    assert plan.packages["nvidia-driver-580-server-open"] == f"{SECOND}-0ubuntu1"


def test_a_driver_that_is_left_alone_is_spoken_of():
    given = settled_node()
    given["driver"]["managed"] = False
    assert plan_of(given).warnings == ()
    given["driver"]["packages"]["nvidia-fabricmanager-580"] = f"{FIRST}-0ubuntu1"
    said = plan_of(given).warnings
    assert any(f"nvidia-fabricmanager-580 {FIRST} next to" in text for text in said)
    del given["driver"]["packages"]["nvidia-fabricmanager-580"]
    given["driver"]["services"][components.MANAGER_UNIT] = None
    assert any("is not there" in text for text in plan_of(given).warnings)
    given["driver"]["services"][components.MANAGER_UNIT] = "failed"
    assert any("is failed" in text for text in plan_of(given).warnings)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("580.95.05-0ubuntu1", "580.95.05"),
        ("3:580.95.05-1.el9", "580.95.05"),
        ("595.58-1", "595.58"),
        ("2025.10.11-1", None),
        ("6.8.0-85.85", None),
    ],
)
def test_versions(text, version):
    assert components.plain_version(text) == version


def test_units_whose_package_changed():
    old = {"nvidia-fabricmanager-580": "580.95.05-1", "nvidia-imex": "580.95.05-1"}
    new = {"nvidia-fabricmanager": "595.58.03-1", "nvidia-imex": "580.95.05-1"}
    assert components.changed_units(old, new) == (components.MANAGER_UNIT,)
    assert components.changed_units(old, old) == components.changed_units({}, new) == ()
    renamed = {"nvidia-fabric-manager": "570.1-1"}
    assert components.changed_units(renamed, new) == (components.MANAGER_UNIT,)
