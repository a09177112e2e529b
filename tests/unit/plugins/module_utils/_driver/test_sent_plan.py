# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan arrives on the node as it was made, and only on the node that it was made for."""

from __future__ import annotations

import copy
import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.packages import (
    streams_of_installed,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import plan_driver
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.sent_plan import (
    CODE,
    SentPlan,
    planned_for,
    read_plan,
)
from tests.unit.fixtures.driver_cases import facts, request
from tests.unit.fixtures.driver_table import TABLE

ROWS = [
    [cell.strip() for cell in line.split(" | ")][:4]
    for line in TABLE.splitlines()
    if line.strip() and not line.startswith("#")
]


def over_the_wire(plan):
    return json.loads(json.dumps(plan.to_json()))


def plan_of(gpus="T4", on="d12", stands="-", requested="580", **options):
    given = facts(gpus, on, stands)
    return plan_driver(given, *read_options({**request(requested), **options}))


def test_each_plan_of_the_table_arrives_as_it_was_made():
    for gpus, on, stands, requested in ROWS:
        plan = plan_of(gpus, on, stands, requested)
        read = read_plan(over_the_wire(plan))
        assert over_the_wire(read) == over_the_wire(plan), (gpus, on, stands, requested)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("action", "reinstall"),
        ("change", ""),
        ("files", {"/etc/shadow": "root::"}),
        ("files", {"/etc/modprobe.d/kubegpu-nouveau.conf\n": "x"}),
        ("files", {"/etc/modprobe.d/kubegpu-nouveau.conf": None}),
        ("services", {"a unit; reboot": "enabled"}),
        ("packages", {"--allow-downgrade": "1"}),
        ("packages", {"nvidia-open": ["1"]}),
        ("uninstall", "rm"),
        ("runfile", {"arguments": "--silent", "other": 1}),
        ("steps", [{"step": "x"}]),
        ("reboot", {"required": "perhaps"}),
    ],
)
def test_a_plan_of_another_form_is_refused(name, value):
    with pytest.raises(InputError, match=name):
        read_plan({**over_the_wire(plan_of()), name: value})


def test_what_is_sent_is_read():
    given = facts("T4", "d12", "-")
    sent = SentPlan(plan_of(), planned_for(given), {"nvidia-driver": "580-open"})
    read = SentPlan.from_json(json.loads(json.dumps(sent.to_json())))
    assert read.to_json() == sent.to_json()
    with pytest.raises(InputError, match="_plan"):
        SentPlan.from_json({"plan": over_the_wire(plan_of())})


def change(given, *path, to):
    found = copy.deepcopy(given)
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return found


OTHER = [
    (("os", "boot_id"), "1234", "boot id: "),
    (("os", "kernel"), "6.1.0-41-amd64", "kernel: 6.1.0-40-amd64 then, 6.1.0-41-amd64 now"),
    (("driver", "loaded"), "575.57.08", "loaded driver: none then, 575.57.08 now"),
    (("driver", "packages"), {"nvidia-smi": "535.1-1"}, "packages of the driver: different"),
    (("driver", "held"), True, "packages of the driver"),
    (("driver", "configuration"), {"/etc/nvidia/gridd.conf": "0"}, "files of the driver"),
    (("driver", "pending"), "install", "record of the driver"),
    (("gpus",), [], "GPUs"),
    (("repositories",), [{"file": "x"}], "repositories"),
    (("secure_boot",), True, "kernel modules"),
    (("kernels",), [], "kernels"),
    (("as_root",), None, "rights of the reader"),
]


@pytest.mark.parametrize(("path", "to", "said"), OTHER, ids=lambda one: str(one)[:40])
def test_a_node_that_has_changed_is_refused(path, to, said):
    given = facts("T4", "d12", "-")
    sent = SentPlan(plan_of(), planned_for(given))
    sent.check(given)
    with pytest.raises(KubegpuError) as caught:
        sent.check(change(given, *path, to=to))
    assert caught.value.code == CODE
    assert said in caught.value.evidence and caught.value.next_step


def test_a_package_manager_of_an_interrupted_run_may_go_on():
    """Its packages come while the next run plans, which waits for them."""
    given = facts("T4", "d12", "-")
    given["driver"]["pending"] = "install"
    sent = SentPlan(plan_of(), planned_for(given))
    now = change(given, "driver", "packages", to={"nvidia-smi": "535.1-1"})
    sent.check(change(now, "driver", "installed", to="535.1"))
    with pytest.raises(KubegpuError, match="boot id"):
        sent.check(change(now, "os", "boot_id", to="1234"))


def test_a_service_that_is_restarted_is_no_other_node():
    given = facts("T4", "d12", "-")
    services = {**given["driver"]["services"], "nvidia-persistenced": "activating"}
    given["driver"]["services"]["nvidia-persistenced"] = "failed"
    SentPlan(plan_of(), planned_for(given)).check(change(given, "driver", "services", to=services))


def test_what_is_sent_of_a_node_is_short():
    given = facts("+".join(["H100"] * 8), "u24", "-")
    given["driver"]["packages"] = {f"package-{number}": "1" * 500 for number in range(2000)}
    given["os"]["kernel"] = "k" * 4000
    assert len(json.dumps(planned_for(given))) < 2000


#: What plans read, and what is left out of the comparison, with the reason.
LEFT_OUT = {
    # A service may be restarted at any time; a plan starts it, whatever its state is.
    "services",
    # Whether a driver answers is compared by its answers.
    "driver_hang",
    "problems",
}


class Seen(dict):
    """Facts that remember which of their keys were read."""

    def __init__(self, values, seen):
        super().__init__(values)
        self.seen = seen

    def __getitem__(self, key):
        self.seen.add(key)
        return super().__getitem__(key)

    def get(self, key, default=None):
        self.seen.add(key)
        return super().get(key, default)


def test_all_that_plans_are_decided_by_is_compared():
    read, compared = set(), set()

    def watched(given, seen):
        parts = {name: Seen(given[name], seen) for name in ("os", "driver")}
        gpus = [Seen(gpu, seen) for gpu in given["gpus"]]
        return Seen({**given, **parts, "gpus": gpus}, seen)

    for gpus, on, stands, requested in ROWS:
        given = facts(gpus, on, stands)
        plan_driver(watched(given, read), *read_options(request(requested)))
        planned_for(watched(given, compared))
    # Names for people only, by the identifiers that are compared.
    assert read - compared - LEFT_OUT - {"product"} == set()


BEFORE = {"installed": "580.95.05", "source": "nvidia", "kernel_module": "open"}


@pytest.mark.parametrize(
    ("driver", "streams"),
    [
        ({**BEFORE, "streams": {"nvidia-driver": "open-dkms"}}, {}),
        ({**BEFORE, "streams": {}}, {}),
        # Facts that do not say.
        ({**BEFORE, "streams": None}, {"nvidia-driver": "580-open"}),
        ({"streams": None}, {}),
    ],
)
def test_the_stream_of_the_installed_driver_is_known(driver, streams):
    given = facts("T4", "rocky9", "-")
    given["driver"].update(driver)
    assert streams_of_installed(given, read_options({})[1]) == streams
