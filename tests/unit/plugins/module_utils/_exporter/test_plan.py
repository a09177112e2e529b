# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import hashlib
import json

import pytest

from plugins.module_utils._exporter.files import setup
from plugins.module_utils._exporter.options import read_options
from plugins.module_utils._exporter.plan import plan_exporter
from tests.unit.fixtures.node_facts import P4
from tests.unit.fixtures.node_facts import node as facts

COUNTERS = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n"
DEBIAN = "/var/lib/prometheus/node-exporter"
AMD = {**P4, "vendor": "amd", "address": "0000:c1:00.0"}


def node(**exporter):
    found = facts()
    found["exporter"].update({"textfile_directories": [DEBIAN], **exporter})
    return found


def plan(found, **options):
    return plan_exporter(found, read_options({"counters": COUNTERS, **options}))


def converged(method, found=None, **options):
    """Return the facts after a run."""
    found = copy.deepcopy(found or node())
    done = plan(found, method=method, **options)
    request = read_options({"counters": COUNTERS, "method": method, **options})
    wanted = setup(method, request, found, done.gpus)
    found["exporter"].update(
        method=method,
        expected_gpus=list(done.gpus),
        files={
            path: hashlib.sha256(text.encode()).hexdigest() for path, text in wanted.files.items()
        },
        enabled=list(wanted.units),
        packages_managed=method == "packages",
        packages={name: f"1:{version[:-1]}-1" for name, version in done.packages.items()},
        listeners={"9400": "dcgm-exporter (pid 7)"} if method != "textfile" else {},
    )
    found["exporter"]["units"].update(dict.fromkeys(wanted.units, "active"))
    return found


@pytest.mark.parametrize("method", ["textfile", "packages", "container"])
def test_new_and_again(method):
    first = plan(node(), method=method)
    assert first.action == "change"
    assert first.change_setup
    assert first.gpus == ("0000:00:05.0",)
    again = plan(converged(method), method=method)
    assert (again.action, again.change, again.steps) == ("none", False, ())
    json.dumps(first.to_json())


def test_packages_are_the_pair_of_versions_from_nvidias_repository():
    made = plan(node(), method="packages", version="4.5.3-4.8.2")
    assert made.packages == {
        "datacenter-gpu-manager-4-core": "4.5.3*",
        "datacenter-gpu-manager-exporter": "4.8.2*",
    }
    assert made.optional_packages == {"datacenter-gpu-manager-4-proprietary": "4.5.3*"}
    assert made.repository["name"] == "kubegpu-nvidia-dcgm"
    assert "debian12" in made.repository["url"]
    assert [step.step for step in made.steps] == ["repository", "monitoring", "monitoring"]
    assert plan(node(), method="packages", profiling=False).optional_packages == {}


def test_the_drivers_repository_is_not_added_twice():
    url = plan(node(), method="packages").repository["url"]
    assert plan(node(), method="packages", planned_repositories=[url]).repository is None


def test_old_dcgm_makes_way():
    found = node(packages={"datacenter-gpu-manager": "1:3.3.9"})
    assert plan(found, method="packages").obsolete == ("datacenter-gpu-manager",)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"units": {"nvidia-dcgm-exporter": "failed"}}, "nvidia-dcgm-exporter is failed"),
        ({"enabled": ["nvidia-dcgm"]}, "nvidia-dcgm-exporter is not enabled"),
        ({"files": {}}, "is missing"),
        ({"packages": {"datacenter-gpu-manager-4-core": "1:4.6.1-1"}}, "not installed"),
        ({"expected_gpus": []}, "1 GPUs are expected, not 0"),
    ],
)
def test_what_differs_is_the_reason(change, word):
    found = converged("packages")
    for name, value in change.items():
        old = found["exporter"][name]
        keep = isinstance(old, dict) and value and name == "units"
        found["exporter"][name] = {**old, **value} if keep else value
    assert word in " ".join(plan(found, method="packages").reasons)


def test_another_method_removes_the_first_one():
    made = plan(converged("packages"), method="textfile")
    assert made.remove_packages
    assert made.reasons == (
        "monitoring: the method was packages",
        "monitoring: the method is textfile now",
    )
    assert made.scrape == {"exporter": "node", "port": None, "scheme": "http", "gpus": 0}


@pytest.mark.parametrize(
    ("before", "asked", "method", "gpus"),
    [
        ("container", "packages", "packages", [P4]),
        ("container", "auto", "packages", [P4]),
        ("packages", "container", "container", [P4]),
        ("container", "textfile", "textfile", [P4]),
        ("container", "auto", "textfile", [P4, AMD]),
    ],
)
def test_our_own_exporter_on_the_port_makes_way_for_another_method(before, asked, method, gpus):
    found = converged(before)
    found["gpus"] = gpus
    made = plan(found, method=asked)
    assert (made.action, made.method, made.warnings) == ("change", method, ())
    assert f"monitoring: the method was {before}" in made.reasons


def test_port_of_an_exporter_of_ours_that_does_not_run_is_taken_by_somebody_else():
    found = converged("container")
    found["exporter"]["units"]["kubegpu-dcgm-exporter"] = None
    assert "port 9400" in plan(found, method="packages").warnings[0]


def test_automatic_method():
    assert plan(node()).method == "packages"
    several = node()
    several["gpus"] = [P4, AMD]
    assert plan(several).method == "textfile"
    unknown = node()
    unknown["os"].update(id="gentoo", family=None, package_manager=None)
    assert plan(unknown).method == "textfile"
    unknown["os"].update(id="mint", family="debian", version="1", package_manager="apt")
    assert plan(unknown).method == "textfile"


def test_gpus_of_virtual_machines_are_not_expected_of_dcgm():
    found = node()
    found["gpus"] = [P4, {**P4, "address": "0000:00:06.0", "kernel_driver": "vfio-pci"}]
    made = plan(found)
    assert made.method == "packages"
    assert len(made.gpus) == 2
    assert made.scrape["gpus"] == 1
    found["gpus"] = found["gpus"][1:]
    made = plan(found)
    assert made.method == "textfile"
    unit = setup("textfile", read_options({}), found, made.gpus)
    assert "nvidia-smi" not in unit.files["/etc/systemd/system/kubegpu-metrics.service"]


def test_the_method_stays_when_the_last_gpu_is_lost():
    found = converged("packages")
    found["gpus"] = []
    assert plan(found).method == "packages"
    assert plan(found).scrape["gpus"] == 1


@pytest.mark.parametrize(
    ("exporter", "word"),
    [
        ({"foreign_units": {"dcgm-exporter": "active"}}, "dcgm-exporter.service (active)"),
        ({"units": {"nvidia-dcgm-exporter": "inactive"}}, "nvidia-dcgm-exporter.service (inact"),
        ({"listeners": {"9400": "docker-proxy (pid 12)"}}, "port 9400: docker-proxy (pid 12)"),
        ({"listeners": {"9400": ""}}, "port 9400: a program of the node"),
    ],
)
@pytest.mark.parametrize("method", ["auto", "packages", "container"])
def test_exporter_of_somebody_else_is_named_and_left_alone(method, exporter, word):
    found = node(**exporter)
    made = plan(found, method=method)
    assert (made.action, made.method, made.change) == ("none", "", False)
    assert word in made.warnings[0]
    assert made.scrape is None
    # Text files are no second exporter.
    assert plan(found, method="textfile").action == "change"


@pytest.mark.parametrize(
    ("listener", "method"), [("java (pid 7)", "textfile"), ("dcgm-exporter (pid 7)", "")]
)
def test_a_port_that_text_files_do_not_need(listener, method):
    found = node(listeners={"9400": listener})
    found["gpus"] = [P4, AMD]
    assert plan(found).method == method


def test_beside_others_needs_another_port():
    found = node(listeners={"9400": "x"}, foreign_units={"dcgm-exporter": "active"})
    refused = plan(found, method="container", beside_others=True)
    assert refused.action == "refuse"
    assert "gpu_monitoring_listen" in refused.reasons[0]
    made = plan(found, method="container", beside_others=True, listen=":9401")
    assert made.action == "change"
    assert made.scrape["port"] == 9401


@pytest.mark.parametrize(
    ("method", "change", "word"),
    [
        ("textfile", lambda one: one["exporter"].update(textfile_directories=[]), "node_exporter"),
        ("textfile", lambda one: one["exporter"].update(systemd=False), "needs systemd"),
        ("packages", lambda one: one.update(gpus=[AMD]), "NVIDIA's GPUs only"),
        ("container", lambda one: one["runtimes"].update(docker=None), "no Docker"),
        ("packages", lambda one: one["os"].update(id="x", version="9"), "does not say"),
        ("packages", lambda one: one["os"].update(arch="s390x"), "not known"),
    ],
)
def test_refusals(method, change, word):
    found = node()
    change(found)
    made = plan(found, method=method)
    assert made.action == "refuse"
    assert word in made.reasons[0]
    assert "gpu_monitoring_" in made.reasons[0]


def test_card_that_is_gone_stays_expected():
    found = converged("textfile")
    found["exporter"]["expected_gpus"] = ["0000:00:05.0", "0000:00:06.0"]
    made = plan(found, method="textfile")
    assert made.gpus == ("0000:00:05.0", "0000:00:06.0")
    assert "a GPU at 0000:00:06.0" in made.warnings[0]
    found["gpus"] = []
    assert plan(found, method="textfile").gpus == ("0000:00:05.0", "0000:00:06.0")
    known = plan(found, method="textfile", expected_gpus=["0000:00:05.0"])
    assert known.gpus == ("0000:00:05.0",)
    assert known.warnings == ()


def test_node_without_gpu():
    assert plan(facts(gpus=[])).reasons == ("This node has no GPU: nothing to monitor.",)
