# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds of every driver's plan, over all pairs of machines and requests; and details."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.package_calls import (
    PINNING_SET,
    install_calls,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan import config_files
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.plan import (
    Plan,
    plan_driver,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.package_names import is_driver
from tests.tools import tiers
from tests.unit.fixtures.driver_cases import EL_10_KEY, facts, request
from tests.unit.fixtures.driver_table import TABLE

KEYS = set(Plan.__dataclass_fields__)
OLD = ("M60", "P4", "V100")
OPEN_ONLY = ("GH200", "B200", "PRO4500")
GPUS = (
    *OLD,
    *OPEN_ONLY,
    *("T4", "A100", "H100", "L4", "NEW", "K80", "T4v", "T4?"),
    *("V100+T4", "T4+B200", "V100+B200", "-"),
)
# Systems with RPM packages: dnf 4 with streams and without, dnf 5, zypper, one that is best effort.
RPM = (
    "rocky8",
    "rocky9 sb",
    "alma10",
    "rhel10 sb",
    "fedora",
    "amzn",
    "sles15",
    "sles15 sb",
    "euler",
)
SYSTEMS = ("u24", "u24 sb", "u22", "u26", "d12", "d12 sb", "d13", "d13 arm", "rocky9", "arch", *RPM)
PRESENT = (
    "-",
    "distro 580.126.09 open held ours",
    "distro 535.261.03 proprietary",
    "nvidia 595.58.03 open",
    "nvidia 580.126.09 proprietary dkms ours",
    "runfile 550.163.01 proprietary",
    "unknown 580.126.09 ?",
    "distro 580.126.09 open nomodule",
)
REQUESTS = (
    *("-", "580", "595", "535", "open", "proprietary", "nvidia", "distro", "dkms", "absent"),
    *("595.58.03", "620", "999", "580 replace", "replace distro", "run=580.126.09 dkms replace"),
    *("previous", "absent replace", "hold=false 580", "compute_only=true"),
)


def plan_of(cards, on, stands="-", requested="-", **options):
    given = facts(cards, on, stands)
    return plan_driver(given, *read_options({**request(requested), **options}))


# One in so many of the product: a prime that none of the four lengths has as a factor, so that
# each pair of words comes together in some plan.
EACH = 13 if tiers.is_full() else 59


def test_what_holds_of_every_plan():
    every = list(itertools.product(GPUS, SYSTEMS, PRESENT, REQUESTS))
    chosen = every[::EACH]
    for one, other in itertools.combinations(range(4), 2):
        pairs = {(case[one], case[other]) for case in every}
        assert {(case[one], case[other]) for case in chosen} == pairs, "a pair is never tried"
    for gpus, on, stands, requested in chosen:
        given = facts(gpus, on, stands)
        untouched = copy.deepcopy(given)
        plan = plan_driver(given, *read_options(request(requested)))
        where = (gpus, on, stands, requested, plan.action, plan.branch, plan.kernel_module)
        check_plan(plan, where)
        if plan.action in ("install", "upgrade", "downgrade"):
            check_install(plan, gpus, on, where)
        assert given == untouched, "facts were changed"


def check_plan(plan, where):
    value = plan.to_json()
    assert set(value) == KEYS, where
    assert json.loads(json.dumps(value)) == value, where
    assert plan.reasons and all(plan.reasons), where
    assert plan.change == bool(plan.steps), where
    assert all(step.reason for step in plan.steps), where
    if plan.action == "refuse":
        assert not plan.change and not plan.packages and not plan.files, where
        assert plan.reasons[-1].startswith("Next step: "), where
    if plan.action not in ("none", "refuse"):
        assert plan.change, where
    assert set(plan.files) <= set(config_files.PATHS), where
    assert not [name for name in plan.obsolete if "container" in name], where
    assert not set(plan.obsolete) & set(plan.packages), where
    if plan.reboot["required"]:
        assert plan.reboot["reason"], where


def check_install(plan, gpus, on, where):
    words = gpus.split("+")
    if any(word in OPEN_ONLY for word in words):
        first = 535 if set(words) & set(OPEN_ONLY) == {"GH200"} else 570
        assert plan.kernel_module == "open" and int(plan.branch) >= first, where
    if any(word in OLD for word in words):
        assert plan.kernel_module == "proprietary" and int(plan.branch) <= 580, where
    assert gpus != "V100+B200" and "K80" not in words and gpus != "-", where
    if int(plan.branch) >= 620:
        assert plan.kernel_module == "open", where
    if "T4v" in words:
        assert plan.source == "runfile", where
    if on == "arch":
        assert plan.source == "runfile", where
    if plan.source == "runfile":
        assert plan.runfile["checksum"] and plan.runfile["arguments"], where
    else:
        assert [name for name in plan.packages if is_driver(name)], where
        assert plan.lock["patterns"], where


@pytest.mark.full(why="test_what_holds_of_every_plan has a machine without GPUs")
def test_a_node_without_nvidia_gpus_is_never_touched():
    for on, stands, requested in itertools.product(SYSTEMS, PRESENT, REQUESTS):
        if not requested.startswith("absent"):
            plan = plan_of("MI300", on, stands, requested)
            assert (plan.action, plan.change, plan.packages) == ("none", False, {})


ROWS = [
    tuple(cell.strip() for cell in line.split(" | ", 4))
    for line in TABLE.splitlines()
    if line.strip() and not line.startswith("#")
]


def made_so(given, plan):
    """Return the facts of a node on which the plan was carried out, as the module would do it.

    A stand-in: packages are names in a mapping here.
    """
    node = copy.deepcopy(given)
    driver = node["driver"]
    version = plan.version or f"{plan.branch}.990.01"
    if plan.action == "remove":
        driver.update(
            loaded=None, installed=None, userland=None, kernel_module=None, source=None,
            packages={}, dkms=[], held=None, unheld=[], configuration={}, managed=False,
            uninstaller=None, recorded_files=[],
        )  # fmt: skip
        for kernel in node["kernels"]:
            kernel["driver"] = None
        return node
    packages = {
        name: text for name, text in driver["packages"].items() if name not in plan.obsolete
    }
    for name, wanted in {**plan.packages, **plan.pinning}.items():
        if is_driver(name):
            known = packages.get(name, "1") if wanted is None else f"{wanted.rstrip('*')}-1"
            packages[name] = f"{version}-1" if known.endswith(".-1") else known
    if plan.source == "runfile":
        driver["dkms"] = [
            {"kernel": node["os"]["kernel"], "version": version, "state": "installed"}
        ]
        driver["uninstaller"] = "/usr/bin/nvidia-uninstall"
    driver.update(
        installed=version,
        userland=version,
        kernel_module=plan.kernel_module,
        source=plan.source,
        packages=packages,
        held=plan.hold if packages else None,
        unheld=[] if plan.hold else list(packages),
        managed=True,
        configuration={
            path: hashlib.sha256(text.encode()).hexdigest() for path, text in plan.files.items()
        },
        recorded_files=list(plan.files),
    )
    for kernel in node["kernels"]:
        kernel.update(driver=version, headers=True)
    if plan.load or driver["loaded"]:
        driver["loaded"] = version if plan.load else driver["loaded"]
        driver["services"] = dict.fromkeys(driver["services"], "active")
    if plan.licence_token:
        driver["configuration"][config_files.TOKEN] = "0" * 64
        driver["recorded_files"].append(config_files.TOKEN)
    return node


@pytest.mark.parametrize("requested", sorted({row[3] for row in ROWS}))
def test_a_second_run_has_nothing_to_do(requested):
    options = read_options(request(requested))
    for row in [row for row in ROWS if row[3] == requested]:
        given = facts(*row[:3])
        plan = plan_driver(given, *options)
        if not plan.change:
            continue
        node = made_so(given, plan)
        if requested == "previous":
            # The module keeps the record of what was put back.
            node["driver"]["previous"] = given["driver"]["previous"]
        again = plan_driver(node, *options)
        assert (again.action, [*again.steps]) == ("none", []), (row, again.reasons)


# Details of packages, repository, files and the rest.


def names(mapping):
    return sorted(mapping)


def test_ubuntu_takes_signed_modules_for_the_running_and_the_newest_kernel():
    given = facts("T4", "u24")
    given["kernels"].append({**given["kernels"][0], "version": "6.8.0-110-generic",
                             "running": False})  # fmt: skip
    plan = plan_driver(given, *read_options({}))
    assert plan.packages == {
        "linux-modules-nvidia-580-server-open-generic": None,
        "nvidia-headless-no-dkms-580-server-open": "580.*",
        "nvidia-utils-580-server": "580.*",
        "nvidia-compute-utils-580-server": "580.*",
        "libnvidia-decode-580-server": "580.*",
        "libnvidia-encode-580-server": "580.*",
    }
    assert names(plan.optional_packages) == [
        "linux-modules-nvidia-580-server-open-6.8.0-100-generic",
        "linux-modules-nvidia-580-server-open-6.8.0-110-generic",
    ]
    assert plan.repository is None and plan.pinning == {}
    assert plan.lock["version"] == "580."


@pytest.mark.parametrize(
    ("kernel", "package"),
    [
        ("6.8.0-100-generic", "linux-modules-nvidia-580-server-open-generic"),
        ("6.8.0-100-generic-64k", "linux-modules-nvidia-580-server-open-generic-64k"),
        ("6.8.0-1040-nvidia-64k", "linux-modules-nvidia-580-server-open-nvidia-64k"),
        ("6.17.0-1014-nvidia-64k", "linux-modules-nvidia-580-server-open-nvidia-64k-hwe-24.04"),
        ("6.17.0-1014-nvidia", "linux-modules-nvidia-580-server-open-nvidia-hwe-24.04"),
        ("6.8.0-100-lowlatency", "linux-modules-nvidia-580-server-open-lowlatency"),
        # The plain names of these go on to later series, and bring a kernel of those along:
        # packages.ubuntu.com, noble-updates, linux-modules-nvidia-580-server-open-aws.
        ("6.8.0-1020-aws", "linux-modules-nvidia-580-server-open-aws-6.8"),
        ("6.8.0-1020-aws-64k", "linux-modules-nvidia-580-server-open-aws-64k-6.8"),
        ("7.0.0-1018-aws", "linux-modules-nvidia-580-server-open-aws-7.0"),
        ("6.8.0-1030-azure", "linux-modules-nvidia-580-server-open-azure-6.8"),
        ("6.8.0-1030-azure-fde", "linux-modules-nvidia-580-server-open-azure-fde-6.8"),
        ("6.8.0-1030-azure-nvidia", "linux-modules-nvidia-580-server-open-azure-nvidia-6.8"),
        ("6.17.0-1020-gcp", "linux-modules-nvidia-580-server-open-gcp-6.17"),
        ("6.8.0-1010-gke", "linux-modules-nvidia-580-server-open-gke-6.8"),
        ("6.8.0-1010-ibm", "linux-modules-nvidia-580-server-open-ibm-6.8"),
        ("6.8.0-1010-oracle", "linux-modules-nvidia-580-server-open-oracle-6.8"),
        ("7.0.0-2008-nvidia-bos", "linux-modules-nvidia-580-server-open-nvidia-bos-7.0"),
        ("6.8.0-1020-nvidia", "linux-modules-nvidia-580-server-open-nvidia"),
        ("6.14.0-20-generic", "linux-modules-nvidia-580-server-open-generic-hwe-24.04"),
        ("6.12.1-custom", "linux-headers-generic"),
        ("6.12.1", "linux-headers-generic"),
    ],
)
def test_ubuntu_kernels(kernel, package):
    plan = plan_of("T4", f"u24 k={kernel}")
    assert package in plan.packages
    built = package.startswith("linux-headers")
    assert ("nvidia-headless-580-server-open" in plan.packages) == built


@pytest.mark.parametrize(
    ("on", "required", "optional"),
    [
        ("u24 k=6.8.0-1020-aws", None, "linux-headers-aws-lts-24.04"),
        ("u22 k=5.15.0-1080-azure", None, "linux-headers-azure-lts-22.04"),
        ("u24 k=6.17.0-1020-gcp", "linux-headers-gcp", None),
        # No package follows these by a name that is known.
        ("u24 k=6.8.0-1010-gke", None, None),
        ("u24 k=6.14.0-20-generic", "linux-headers-generic-hwe-24.04", None),
    ],
)
def test_headers_of_ubuntus_cloud_kernels_follow_their_own_series(on, required, optional):
    for requested in ("580 dkms", "nvidia 580"):
        plan = plan_of("T4", on, "-", requested)
        kernel = on.rpartition("=")[2]
        found = {name for name in plan.packages if name.startswith("linux-headers")}
        assert found == ({required} if required else set())
        more = {name for name in plan.optional_packages if name.startswith("linux-headers")}
        assert more == {f"linux-headers-{kernel}", *([optional] if optional else [])}


def test_the_next_boots_kernel_of_another_series_has_its_exact_modules():
    given = facts("T4", "u24 k=6.8.0-1020-aws")
    given["kernels"].append({**given["kernels"][0], "version": "7.0.0-1018-aws",
                             "running": False})  # fmt: skip
    plan = plan_driver(given, *read_options({}))
    assert names(plan.optional_packages) == [
        "linux-modules-nvidia-580-server-open-6.8.0-1020-aws",
        "linux-modules-nvidia-580-server-open-7.0.0-1018-aws",
    ]
    named = [name for name in plan.packages if name.startswith("linux-modules")]
    assert named == ["linux-modules-nvidia-580-server-open-aws-6.8"]


def test_debian_headless_set_from_its_archive():
    plan = plan_of("V100", "d13")
    assert names(plan.packages) == [
        "libcuda1",
        "libnvidia-cfg1",
        "libnvidia-encode1",
        "libnvidia-ml1",
        "libnvidia-ptxjitcompiler1",
        "linux-headers-amd64",
        "nvidia-kernel-dkms",
        "nvidia-modprobe",
        "nvidia-persistenced",
        "nvidia-smi",
    ]
    # They have versions of their own.
    assert plan.packages["nvidia-modprobe"] is plan.packages["nvidia-persistenced"] is None
    assert plan.packages["nvidia-kernel-dkms"] == "550.*"
    assert names(plan.optional_packages) == ["linux-headers-6.12.117+deb13-amd64"]
    assert plan.repository == {
        "name": "kubegpu-debian-non-free",
        "url": "http://mirror.example/debian",
        "suite": "trixie",
        "components": ["contrib", "non-free", "non-free-firmware"],
        "key_url": None,
        "key_fingerprints": [],
        "keyring": "/usr/share/keyrings/debian-archive-keyring.gpg",
        "replaces": [],
    }


def test_debian_repository_asks_for_what_is_missing_only():
    given = facts("V100", "d13")
    given["os"]["archive"]["components"] = ["main", "contrib", "non-free-firmware"]
    options = read_options({})
    assert plan_driver(given, *options).repository["components"] == ["non-free"]
    given["os"]["archive"]["components"].append("non-free")
    assert plan_driver(given, *options).repository is None
    given["os"]["archive"]["components"] = ["main"]
    given["repositories"] = [
        {
            "file": "/etc/apt/sources.list.d/kubegpu-debian-non-free.sources",
            "uri": "http://mirror.example/debian",
            "key_fingerprint": None,
            "signed_by": None,
            "enabled": True,
        }
    ]
    assert plan_driver(given, *options).repository is None


def test_debian_12_open_is_of_one_version():
    plan = plan_of("T4", "d12", "-", "distro open")
    assert plan.version == "535.261.03"
    assert plan.packages["nvidia-open-kernel-dkms"] == "535.261.03*"
    assert plan.packages["libcuda1"] == "535.261.03*"
    assert plan.lock["version"] == "535.261.03"


@pytest.mark.parametrize(
    ("gpus", "on", "requested", "expected"),
    [
        ("T4", "d12", "580", {"nvidia-open-580": "580.*"}),
        ("V100", "d12", "580", {"cuda-drivers-580": "580.*"}),
        ("T4", "d12", "595", {"nvidia-open": "595.*"}),
        ("T4", "d12", "595 proprietary", {"cuda-drivers": "595.*"}),
        ("T4", "d12", "595.58.03", {"nvidia-open": "595.58.03*"}),
        ("T4", "u24", "nvidia 580", {"nvidia-open-580": "580.*"}),
        ("T4", "u24", "nvidia 580 compute_only=true",
         {"libnvidia-compute-580": "580.*", "nvidia-dkms-580-open": "580.*"}),
        ("V100", "u24", "nvidia 580 compute_only=true",
         {"libnvidia-compute-580": "580.*", "nvidia-dkms-580": "580.*"}),
        ("T4", "u24", "nvidia 610 compute_only=true",
         {"libnvidia-compute": "610.*", "nvidia-dkms-open": "610.*"}),
        ("T4", "d12", "580 compute_only=true",
         {"nvidia-driver-cuda": "580.*", "nvidia-kernel-open-dkms": "580.*"}),
        # The names without a branch are Ubuntu's: NVIDIA's guide, compute-only on Debian.
        ("T4", "d13", "595 compute_only=true",
         {"nvidia-driver-cuda": "595.*", "nvidia-kernel-open-dkms": "595.*"}),
        ("T4", "d12", "595.58.03 proprietary compute_only=true",
         {"nvidia-driver-cuda": "595.58.03*", "nvidia-kernel-dkms": "595.58.03*"}),
        ("T4", "rocky9", "580", {"nvidia-open": "580.*", "dkms": None}),
        ("V100", "rocky9", "580", {"cuda-drivers": "580.*", "dkms": None}),
        ("T4", "rocky9", "580 compute_only=true",
         {"nvidia-driver-cuda": "580.*", "kmod-nvidia-open-dkms": "580.*", "dkms": None}),
        ("V100", "alma10", "580.126.09 compute_only=true",
         {"nvidia-driver-cuda": "580.126.09*", "kmod-nvidia-latest-dkms": "580.126.09*",
          "dkms": None}),
        ("T4", "fedora", "595", {"nvidia-open": "595.*", "dkms": None}),
        # SUSE's BCI-dockerfile-generator: dkms from 575 on, G07 from 590 on.
        ("V100", "sles15", "580", {"cuda-drivers": "580.*", "dkms": None}),
        ("V100", "sles15", "580 compute_only=true",
         {"nvidia-compute-utils-G06": "580.*", "nvidia-driver-G06": "580.*", "dkms": None}),
        ("T4", "sles15", "580 compute_only=true",
         {"nvidia-compute-utils-G06": "580.*", "nvidia-open-driver-G06": "580.*", "dkms": None}),
        ("T4", "sles15", "570 compute_only=true",
         {"nvidia-compute-utils-G06": "570.*", "nvidia-open-driver-G06-kmp-default": "570.*"}),
        ("V100", "leap k=6.4.0-150600.8.14-azure", "570 compute_only=true",
         {"nvidia-compute-utils-G06": "570.*", "nvidia-driver-G06-kmp-azure": "570.*"}),
        ("T4", "sles16", "595 compute_only=true",
         {"nvidia-compute-utils-G07": "595.*", "nvidia-open-driver-G07": "595.*", "dkms": None}),
        ("T4", "sles16 sb", "595",
         {"nvidia-open-driver-G07-signed-cuda-kmp-default": "595.*",
          "nvidia-compute-utils-G07": "595.*", "nvidia-video-G07": "595.*"}),
        ("T4", "sles15 sb", "580",
         {"nvidia-open-driver-G06-signed-cuda-kmp-default": "580.*",
          "nvidia-compute-utils-G06": "580.*", "nvidia-video-G06": "580.*"}),
        ("T4", "sles15 sb", "580 compute_only=true",
         {"nvidia-open-driver-G06-signed-cuda-kmp-default": "580.*",
          "nvidia-compute-utils-G06": "580.*"}),
        ("V100", "rocky9 sb", "580", {"cuda-drivers": "580.*"}),
        ("T4", "sles15", "595", {"nvidia-open": "595.*", "dkms": None}),
    ],
)  # fmt: skip
def test_nvidias_names(gpus, on, requested, expected):
    plan = plan_of(gpus, on, "-", requested)
    found = {name: text for name, text in plan.packages.items() if "headers" not in name}
    assert found == expected
    if on in ("d12", "d13", "u24"):
        text = next(iter(expected.values())).removesuffix("*").removesuffix(".")
        assert plan.pinning == {f"nvidia-driver-pinning-{text}": None}
    else:
        assert plan.pinning == {}


@pytest.mark.parametrize(
    ("requested", "pins", "kind"),
    [
        ("nvidia 595", "nvidia-driver-pinning-595", "packages"),
        # Their names have the branch, and a mirror can be older than the packages that pin.
        ("nvidia 580.126.09", "nvidia-driver-pinning-580.126.09", "optional"),
        ("nvidia 570", None, None),
    ],
)
def test_what_pins_is_needed_where_names_have_no_branch(requested, pins, kind):
    tasks = install_calls(plan_of("T4", "u24", "-", requested))
    first = tasks[0]
    assert (first["name"] == PINNING_SET) == bool(pins)
    if pins:
        assert first[kind] == {pins: None} and (kind == "packages" or first["packages"] == {})


def test_a_users_row_with_ubuntus_folder_has_ubuntus_names():
    rows = {"linuxmint22": {"folder": "ubuntu2404"}}
    plan = plan_of("T4", "mint", "-", "595 compute_only=true", repositories=rows)
    assert {"libnvidia-compute", "nvidia-dkms-open"} <= set(plan.packages)


def test_the_stream_that_is_enabled_counts():
    # An administrator's driver of 580, which he took from the stream of the newest ones.
    given = facts("T4", "rocky9", "nvidia 580.95.05 open")
    given["driver"]["streams"] = {"nvidia-driver": "open-dkms", "perl": "5.32"}
    plan = plan_driver(given, *read_options(request("580.105.08")))
    (step,) = (step for step in plan.steps if step.step == "stream")
    assert (step.action, step.detail) == ("switch", "nvidia-driver:580-open")
    assert step.reason.startswith("open-dkms is enabled")
    given["driver"]["streams"] = {"nvidia-driver": "580-open"}
    plan = plan_driver(given, *read_options(request("580.105.08")))
    assert plan.streams == {"nvidia-driver": "580-open"}
    assert "stream" not in [step.step for step in plan.steps]
    # A switch that is left of a driver that went.
    given = facts("T4", "rocky9", "-")
    given["driver"]["streams"] = {"nvidia-driver": "575-open"}
    plan = plan_driver(given, *read_options(request("580")))
    assert [s.action for s in plan.steps if s.step == "stream"] == ["switch"]


@pytest.mark.parametrize("streams", [{"nvidia-driver": "open-dkms"}, {}])
def test_a_driver_that_is_only_held_keeps_its_stream_in_later_runs_too(streams):
    given = facts("T4", "rocky9", "nvidia 580.95.05 open")
    given["driver"]["streams"] = streams
    first = plan_driver(given, *read_options(request("580")))
    assert first.action == "none" and first.steps[0].step == "hold" and first.streams == {}
    # By that run it is managed; then somebody takes the holds away.
    given["driver"]["managed"] = True
    later = plan_driver(given, *read_options(request("580")))
    assert later.action == "none" and later.steps[0].step == "hold" and later.streams == {}
    assert all("module_streams" not in task for task in install_calls(later))


@pytest.mark.parametrize(
    ("gpus", "on", "requested", "stream"),
    [
        ("T4", "rocky8", "580", "580-open"),
        ("T4", "rocky9", "580.126.09", "580-open"),
        ("T4", "rocky9", "580 proprietary", "580-dkms"),
        ("V100", "amzn", "-", "580-dkms"),
        ("T4", "rocky9 sb", "580", "580"),
        ("T4", "rocky9 sb", "580 dkms", "580-open"),
        ("T4", "rhel9", "580 dkms=false", "580"),
        ("T4", "kylin", "580", "open-dkms"),
        ("V100", "kylin", "580", "latest-dkms"),
        ("T4", "euler", "580", "580-open"),
        ("T4", "alma10", "580", None),
        ("T4", "fedora", "595", None),
        ("T4", "azl3", "580", None),
        ("T4", "sles15", "580", None),
        ("T4", "sles15 sb", "580", None),
        ("T4", "d12", "580", None),
        ("T4", "u24", "580", None),
    ],
)
def test_streams_of_dnfs_modules(gpus, on, requested, stream):
    plan = plan_of(gpus, on, "-", requested)
    assert plan.streams == ({"nvidia-driver": stream} if stream else {})
    sets = [task for task in install_calls(plan) if "module_streams" in task]
    assert [task["module_streams"] for task in sets] == ([plan.streams] if stream else [])
    steps = [step for step in plan.steps if step.step == "stream"]
    assert [step.detail for step in steps] == ([f"nvidia-driver:{stream}"] if stream else [])


def test_a_change_of_branch_or_kind_switches_the_stream():
    for requested, stream in (("595", "595-open"), ("580 proprietary", "580-dkms")):
        plan = plan_of("T4", "rocky9", "nvidia 580.126.09 open held ours services", requested)
        assert plan.streams == {"nvidia-driver": stream}
        (step,) = (step for step in plan.steps if step.step == "stream")
        assert (step.action, step.detail) == ("switch", f"nvidia-driver:{stream}")
        assert "580-open" in step.reason
    # Within a stream there is nothing to switch, and it is kept on.
    plan = plan_of("T4", "rocky9", "nvidia 580.95.05 open held ours services", "580.126.09")
    assert plan.streams == {"nvidia-driver": "580-open"}
    assert "stream" not in [step.step for step in plan.steps]
    # That of a driver which an admin installed is left as it is.
    plan = plan_of("T4", "rocky9", "nvidia 580.95.05 open", "580")
    assert plan.steps[0].step == "hold" and plan.streams == {}
    plan = plan_of("T4", "rocky9", "nvidia 580.95.05 open ours services", "580")
    assert plan.steps[0].step == "hold" and plan.streams == {"nvidia-driver": "580-open"}


def test_what_goes_with_another_kind_of_modules_from_rpm_packages():
    plan = plan_of("T4", "rocky9", "nvidia 580.126.09 open held ours services", "580 proprietary")
    assert plan.obsolete == ("kmod-nvidia-open-dkms", "nvidia-open")
    plan = plan_of("T4", "rocky9", "nvidia 580.126.09 open held ours services", "595")
    assert plan.obsolete == ()
    plan = plan_of("T4", "sles15", "nvidia 580.126.09 open held ours services", "580 proprietary")
    assert plan.obsolete == ("nvidia-open", "nvidia-open-driver-G06")
    # SUSE's blog post of 2026-02-22: nothing of G06 may stay beside G07.
    plan = plan_of("T4", "sles15", "nvidia 580.126.09 open held ours services", "595")
    assert plan.obsolete == (
        "nvidia-compute-G06",
        "nvidia-compute-utils-G06",
        "nvidia-open-driver-G06",
    )


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("rocky8", {"kernel-devel-4.18.0-553.el8.x86_64": None,
                    "kernel-devel-matched": "4.18.0-553.el8*"}),
        ("rocky9", {"kernel-devel-5.14.0-570.el9.x86_64": None,
                    "kernel-devel-matched": "5.14.0-570.el9*"}),
        ("rocky9 arm k=5.14.0-570.el9.aarch64+64k",
         {"kernel-64k-devel-5.14.0-570.el9.aarch64": None,
          "kernel-64k-devel-matched": "5.14.0-570.el9*"}),
        ("rocky9 k=5.14.0-570.el9.x86_64+rt", {"kernel-rt-devel-5.14.0-570.el9.x86_64": None,
                                               "kernel-rt-devel-matched": "5.14.0-570.el9*"}),
        ("ol9", {"kernel-uek-devel-5.15.0-313.189.5.1.el9uek.x86_64": None,
                 "kernel-uek-devel-matched": "5.15.0-313.189.5.1.el9uek*"}),
        # Amazon's later kernels: packages of the series' name (public build scripts of AL2023).
        ("amzn", {"kernel-devel-6.1.150-174.amzn2023.x86_64": None,
                  "kernel-devel-matched": "6.1.150-174.amzn2023*"}),
        ("amzn k=6.12.40-64.114.amzn2023.x86_64",
         {"kernel6.12-devel-6.12.40-64.114.amzn2023.x86_64": None,
          "kernel6.12-devel-matched": "6.12.40-64.114.amzn2023*"}),
        ("azl3", {"kernel-devel-6.6.96.1-1.azl3.x86_64": None,
                  "kernel-devel-matched": "6.6.96.1-1.azl3*"}),
        ("sles15", {"kernel-default-devel": "6.4.0-150700.53*"}),
        ("sles15 k=6.4.0-150700.20.6-azure", {"kernel-azure-devel": "6.4.0-150700.20.6*"}),
    ],
)  # fmt: skip
def test_headers_of_rpm_kernels(on, expected):
    plan = plan_of("T4", on, "-", "580")
    found = {name: text for name, text in plan.optional_packages.items() if "kernel" in name}
    assert found == expected
    # Signed modules need none.
    if on == "sles15":
        plan = plan_of("T4", "sles15 sb", "-", "580")
        assert list(plan.optional_packages) == ["nvidia-persistenced"]


def _without_headers(on):
    node = facts("T4", on, "-")
    node["kernels"] = [{**one, "headers": False} for one in node["kernels"]]
    return plan_driver(node, *read_options(request("-")))


def test_headers_of_a_kernel_of_proxmox():
    """Reports: github.com/KyleGospo/gasket-dkms/pull/20, strongtz/i915-sriov-dkms/issues/403."""
    plan = _without_headers("d13 k=6.14.11-2-pve")

    assert "proxmox-headers-6.14.11-2-pve" in plan.optional_packages
    assert not [name for name in plan.packages if name.startswith("linux-headers")]
    assert any(
        "not one of debian" in text and "proxmox-headers-6.14.11-2-pve" in text
        for text in plan.warnings
    )


@pytest.mark.parametrize("on", ["d13", "u24", "rocky9", "sles15", "amzn", "ol9"])
def test_headers_of_the_distribution_need_no_warning(on):
    plan = _without_headers(on)

    assert plan.action == "install"
    assert not any("headers are not installed" in text for text in plan.warnings)


@pytest.mark.parametrize(
    ("on", "meta"),
    [
        ("d12", "linux-headers-amd64"),
        ("d12 arm k=6.1.0-40-arm64", "linux-headers-arm64"),
        ("d12 arm k=6.1.0-40-cloud-arm64", "linux-headers-cloud-arm64"),
        ("d12 k=6.1.0-40-rt-amd64", "linux-headers-rt-amd64"),
    ],
)
def test_headers_of_debian_kernels(on, meta):
    assert meta in plan_of("T4", on, "-", "580").packages


def test_a_node_that_only_computes_has_the_programs_that_go_with_it():
    plan = plan_of("T4", "u24", "-", "nvidia 580 compute_only=true")
    for name in ("nvidia-utils-580", "nvidia-compute-utils-580"):
        assert plan.optional_packages[name] == "580.*"
    assert plan.optional_packages["nvidia-persistenced"] is None


def test_only_within_a_branch_the_kind_of_modules_stays_as_it_is():
    there = "nvidia 580.126.09 proprietary"
    assert "cuda-drivers-580" in plan_of("T4", "d12", there, "580").packages
    assert "nvidia-open" in plan_of("T4", "d12", there, "595").packages


def test_headers_come_for_the_running_and_the_newest_kernel():
    given = facts("T4", "rocky9")
    for newer in ("5.14.0-571.el9.x86_64", "5.14.0-611.el9.x86_64"):
        given["kernels"].append({**given["kernels"][0], "version": newer, "running": False})
    plan = plan_driver(given, *read_options({}))
    assert {name: text for name, text in plan.optional_packages.items() if "kernel" in name} == {
        "kernel-devel-5.14.0-570.el9.x86_64": None,
        "kernel-devel-5.14.0-611.el9.x86_64": None,
        "kernel-devel-matched": "5.14.0-611.el9*",
    }


def test_a_runfile_brings_what_it_builds_with():
    plan = plan_of("T4", "rocky9", "-", "run=580.126.09")
    assert set(plan.packages) == {"gcc", "make", "elfutils-libelf-devel", "dkms"}
    plan = plan_of("T4", "sles15", "-", "run=580.126.09 dkms=false")
    assert set(plan.packages) == {"gcc", "make", "libelf-devel"}
    assert "kernel-default-devel" in plan.optional_packages
    assert plan_of("T4", "arch", "-", "run=580.126.09").packages == {}


def test_unattended_upgrades_are_apts():
    assert config_files.UNATTENDED in plan_of("T4", "d12").files
    for on in ("rocky9", "fedora", "sles15"):
        plan = plan_of("T4", on)
        assert plan.hold and config_files.UNATTENDED not in plan.files


def test_a_new_kernel_may_have_no_precompiled_module_yet():
    """NVIDIA/yum-packaging-precompiled-kmod#57."""
    found = [text for text in plan_of("T4", "rocky9 sb").warnings if "may have none yet" in text]
    assert len(found) == 1 and "kernel 5.14.0-570.el9.x86_64" in found[0]
    # SUSE's come as packages, and not as a stream.
    assert not any("none yet" in text for text in plan_of("A100", "sles15 sb").warnings)


def test_signed_modules_by_a_row_of_the_users_own():
    rows = {"rhel9": {"signed": {}}}
    plan = plan_of("T4", "rocky9 sb", repositories=rows)
    assert plan.action == "refuse" and "Secure Boot is on" in plan.reasons[0]
    rows = {"rhel10": {"signed": {"modules": ["open"], "packages": ["kmod-site-{flavour}"]}}}
    rows["rhel10"]["key_fingerprints"] = [EL_10_KEY]
    plan = plan_of("T4", "rhel10 sb", repositories=rows)
    assert plan.kernel_module == "open" and list(plan.packages) == ["kmod-site-"]
    assert any("firmware trusts its publisher" in text for text in plan.warnings)
    assert plan.streams == {}
    # As docs/driver.md has it for AlmaLinux's own kernel modules.
    signed = {
        "modules": ["open"], "by": "AlmaLinux", "trusted": True,
        "packages": ["nvidia-open-kmod", "nvidia-driver-cuda"], "more": ["nvidia-driver"],
    }  # fmt: skip
    plan = plan_of("T4", "alma9 sb", repositories={"rhel9": {"signed": signed}})
    assert (plan.action, plan.kernel_module, plan.streams) == ("install", "open", {})
    named = {"nvidia-open-kmod": "580.*", "nvidia-driver-cuda": "580.*", "nvidia-driver": "580.*"}
    assert plan.packages == named and not plan.warnings


def test_another_folder_for_a_system_that_is_best_effort():
    plan = plan_of("T4", "euler")
    assert plan.repository["url"].endswith("/repos/rhel9/x86_64")
    rows = {"openeuler24": {"folder": "rhel8"}}
    plan = plan_of("T4", "euler", repositories=rows)
    assert plan.repository["url"].endswith("/repos/rhel8/x86_64")
    # What the row does not say is that of the folder.
    assert plan.repository["key_fingerprints"] and plan.streams == {"nvidia-driver": "580-open"}


@pytest.mark.parametrize(
    ("on", "url", "key", "fingerprint"),
    [
        ("u22", "ubuntu2204/x86_64", "3bf863cc.pub", "EB693B3035CD5710E231E123A4B469963BF863CC"),
        ("u24 arm", "ubuntu2404/sbsa", "3bf863cc.pub", "EB693B3035CD5710E231E123A4B469963BF863CC"),
        ("u26", "ubuntu2604/x86_64", "60DF8A40.pub", "14BAFBC7562AD710CA04E69905FBB6DA60DF8A40"),
        ("d12", "debian12/x86_64", "3bf863cc.pub", "EB693B3035CD5710E231E123A4B469963BF863CC"),
        ("d13", "debian13/x86_64", "8793F200.pub", "02182E60104FCDC26EAE1B8597A5D4CB8793F200"),
        ("rocky9", "rhel9/x86_64", "D42D0685.pub", "610C7B14E068A878070DA4E99CD0A493D42D0685"),
        # Sources of these two beside the data.
        ("sles16", "suse16/x86_64", "3A8B5622.pub", "CF65941A859D4B4E6870F188736A284B3A8B5622"),
        ("fedora", "fedora44/x86_64", "73CD9B30.pub", "129994480EC63D2789BC98E490DFED2F73CD9B30"),
    ],
)
def test_nvidias_repository(on, url, key, fingerprint):
    plan = plan_of("T4", on, "-", "nvidia 595")
    base = f"https://developer.download.nvidia.com/compute/cuda/repos/{url}"
    assert plan.repository["url"] == base and plan.repository["suite"] == "/"
    assert plan.repository["key_url"] == f"{base}/{key}"
    assert plan.repository["key_fingerprints"] == [fingerprint]
    assert plan.repository["keyring"] is None
    assert plan.steps[0].step == "repository"


def test_a_key_whose_fingerprint_nobody_knows_has_to_be_given():
    given = facts("T4", "alma10")
    plan = plan_driver(given, *read_options({"today": "2026-11-21"}))
    assert plan.action == "refuse"
    assert "CDF6BA43.pub" in plan.reasons[0]
    assert "nvidia_driver_repository.key_fingerprints" in plan.reasons[1]
    assert plan_of("T4", "alma10").repository["key_fingerprints"] == [EL_10_KEY]
    # An entry that is there is somebody's own.
    base = "https://developer.download.nvidia.com/compute/cuda/repos/rhel10/x86_64"
    given["repositories"] = [entry(base)]
    plan = plan_driver(given, *read_options({"today": "2026-11-21"}))
    assert (plan.action, plan.repository) == ("install", None)


def entry(uri, key="EB693B3035CD5710E231E123A4B469963BF863CC"):
    return {
        "file": "/etc/apt/sources.list.d/cuda.list",
        "uri": uri,
        "key_fingerprint": key,
        "signed_by": None,
        "enabled": True,
    }


def test_a_repository_that_is_there_and_trusted_stays():
    base = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64"
    given = facts("T4", "d12")
    options = read_options({})
    given["repositories"] = [entry(f"{base}/")]
    assert plan_driver(given, *options).repository is None
    given["repositories"] = [entry(base, "7" * 40)]
    assert plan_driver(given, *options).steps[0].action == "replace"
    given["repositories"] = [entry(base), entry(base)]
    assert plan_driver(given, *options).steps[0].action == "replace"
    assert plan_of("T4", "d12", manage_repository=False).repository is None


def test_a_mirror_replaces_nvidias_address():
    plan = plan_of(
        "T4", "d12", repository_url="https://u:geheim@m.example/{distribution}/{architecture}/"
    )
    # The role, which has the login, puts it back in.
    assert plan.repository["url"] == "https://***@m.example/debian12/x86_64"
    assert plan.repository["replaces"] == [
        "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64"
    ]
    assert "geheim" not in json.dumps(plan.to_json())


def test_what_goes_with_another_branch():
    plan = plan_of("T4", "u24", "distro 580.126.09 open", "595")
    assert names(plan.obsolete) == [
        "libnvidia-compute-580-server",
        "libnvidia-decode-580-server",
        "libnvidia-encode-580-server",
        "linux-modules-nvidia-580-server-open-6.8.0-100-generic",
        "linux-modules-nvidia-580-server-open-generic",
        "nvidia-compute-utils-580-server",
        "nvidia-headless-no-dkms-580-server-open",
        "nvidia-kernel-source-580-server-open",
        "nvidia-utils-580-server",
    ]
    # With one kind of modules for another the libraries stay.
    plan = plan_of("T4", "u24", "distro 580.126.09 open", "580 proprietary")
    assert names(plan.obsolete) == [
        "linux-modules-nvidia-580-server-open-6.8.0-100-generic",
        "linux-modules-nvidia-580-server-open-generic",
        "nvidia-headless-no-dkms-580-server-open",
        "nvidia-kernel-source-580-server-open",
    ]
    plan = plan_of("T4", "d12", "nvidia 595.58.03 open", "580")
    assert "nvidia-driver-pinning-595" in plan.obsolete and "nvidia-open" in plan.obsolete
    plan = plan_of("T4", "d12", "nvidia 580.126.09 open", "595")
    assert "nvidia-open-580" in plan.obsolete and "libnvidia-compute-580" in plan.obsolete
    plan = plan_of("V100", "d12", "nvidia 595.58.03 open", "-")
    assert names(plan.obsolete) == [
        "libnvidia-compute",
        "nvidia-dkms-open",
        "nvidia-driver-pinning-595",
        "nvidia-open",
    ]
    given = facts("T4", "u24", "distro 580.126.09 proprietary")
    shared = "linux-signatures-nvidia-6.8.0-300-generic"
    given["driver"]["packages"][shared] = "6.8.0-300.300"
    assert shared not in plan_driver(given, *read_options({"branch": "595"})).obsolete
    plan = plan_of("T4", "d13", "distro 550.163.01 open", "550 proprietary")
    assert names(plan.obsolete) == ["nvidia-open-kernel-dkms", "nvidia-open-kernel-support"]


def test_exact_versions_change_in_place():
    plan = plan_of("T4", "u24", "distro 580.126.09 open", "580.178.04")
    assert plan.obsolete == ()
    assert plan.packages["nvidia-utils-580-server"] == "580.178.04*"
    assert plan.packages["linux-modules-nvidia-580-server-open-generic"] is None
    assert plan.lock["version"] == "580.178.04"


def test_an_admins_own_choice_of_packages_is_held_as_it_is():
    given = facts("T4", "u24", "distro 580.126.09 open")
    given["driver"]["packages"] = {
        "nvidia-driver-580-open": "580.126.09-0ubuntu1",
        "libnvidia-gl-580": "580.126.09-0ubuntu1",
        "libnvidia-gl-580:i386": "580.126.09-0ubuntu1",
    }
    given["driver"]["unheld"] = list(given["driver"]["packages"])
    plan = plan_driver(given, *read_options({"branch": "580"}))
    assert plan.packages == {
        "nvidia-driver-580-open": "580.126.09-0ubuntu1",
        "libnvidia-gl-580": "580.126.09-0ubuntu1",
    }
    assert plan.steps[0].step == "hold"
    assert plan.lock["version"] == "580.126.09"


def test_a_missing_member_of_our_set_comes_back_in_the_installed_version():
    given = facts("T4", "u24", "distro 580.126.09 open held ours")
    del given["driver"]["packages"]["nvidia-utils-580-server"]
    plan = plan_driver(given, *read_options({}))
    assert plan.steps[0].detail == "nvidia-utils-580-server"
    assert plan.packages["nvidia-utils-580-server"] == "580.126.09*"


def test_replacing_a_runfile_runs_its_uninstaller_first():
    plan = plan_of("T4", "u24", "runfile 535.183.01 proprietary", "580 replace")
    assert plan.uninstall == "runfile"
    assert plan.steps[0].detail == "/usr/bin/nvidia-uninstall"
    given = facts("T4", "u24", "runfile 535.183.01 proprietary")
    given["driver"]["uninstaller"] = None
    plan = plan_driver(given, *read_options(request("580 replace")))
    assert plan.action == "refuse" and "uninstaller is not" in plan.reasons[0]


def test_replacing_packages_by_a_runfile_removes_them():
    plan = plan_of("T4", "u24", "distro 535.288.01 proprietary", "run=580.126.09 replace")
    assert "nvidia-utils-535-server" in plan.obsolete
    assert plan.uninstall is None and plan.hold is False


def test_runfile():
    plan = plan_of("T4", "d12", "-", "run=580.126.09")
    assert plan.runfile["version"] == plan.version == "580.126.09"
    assert plan.runfile["url"].endswith("/NVIDIA-Linux-x86_64-580.126.09.run")
    assert plan.runfile["path"] is None and plan.runfile["remote"] is False
    for argument in ("--silent", "-m=kernel-open", "--dkms", "--skip-module-load"):
        assert argument in plan.runfile["arguments"]
    assert names(plan.packages) == ["dkms", "gcc", "linux-headers-amd64", "make"]
    assert config_files.PERSISTENCED in plan.files and config_files.UNATTENDED not in plan.files
    # Packages bring the unit themselves.
    assert config_files.PERSISTENCED not in plan_of("T4", "d12").files
    assert not plan.hold and plan.lock["patterns"] == []
    plan = plan_of("V100", "d12", "-", "run=580.126.09 dkms=false")
    assert "-m=kernel" in plan.runfile["arguments"] and "--no-dkms" in plan.runfile["arguments"]
    assert "dkms" not in plan.packages


def test_runfile_needs_a_checksum():
    plan = plan_of("T4", "d12", runfile={"path": "/srv/NVIDIA-Linux-x86_64-580.126.09.run"})
    assert plan.action == "refuse" and "checksum" in plan.reasons[0]


@pytest.mark.parametrize("checksum", ["sha256:...", "sha256:", "md5:" + "0" * 32, "x.sha256sum"])
def test_a_checksum_that_is_none_is_refused_in_the_plan(checksum):
    given = {"path": "/srv/NVIDIA-Linux-x86_64-580.126.09.run", "checksum": checksum}
    plan = plan_of("T4", "d12", runfile=given)
    assert plan.action == "refuse" and "checksum" in plan.reasons[0]
    assert "sha256:<64 hex digits>" in " ".join(plan.reasons)


def test_runfile_of_another_name_needs_its_version():
    given = {"path": "/srv/driver.run", "checksum": "sha256:" + "0" * 64}
    assert "version" in plan_of("T4", "d12", runfile=given).reasons[1]
    plan = plan_of("T4", "d12", runfile={**given, "version": "580.126.09"})
    assert (plan.action, plan.version) == ("install", "580.126.09")


def test_licence_of_a_guest():
    licence = {"server": "dls.example.com", "port": 443, "feature_type": 1,
               "token_path": "/srv/token.tok", "token_sha256": "ab"}  # fmt: skip
    plan = plan_of("T4v", "d12", "-", "run=535.129.03-grid", licence=licence)
    assert plan.files[config_files.GRIDD].splitlines()[1:] == [
        "ServerAddress=dls.example.com",
        "ServerPort=443",
        "FeatureType=1",
    ]
    assert plan.licence_token == {"path": "/srv/token.tok"}
    assert plan.services == {"nvidia-persistenced": "enabled", "nvidia-gridd": "enabled"}
    # Beside a whole GPU it has no place.
    plan = plan_of("T4", "d12", licence=licence)
    assert config_files.GRIDD not in plan.files and plan.licence_token is None
    given = facts("T4v", "d12", "runfile 535.129.03 proprietary ours dkms")
    given["driver"]["configuration"] = {config_files.TOKEN: "cd"}
    again = plan_driver(given, *read_options({"licence": licence}))
    assert ("licence", "write") in [(step.step, step.action) for step in again.steps]
    given["driver"]["configuration"] = {config_files.TOKEN: "ab"}
    again = plan_driver(given, *read_options({"licence": licence}))
    assert "licence" not in [step.step for step in again.steps]


def test_the_reason_for_files_is_of_those_that_are_written():
    plan = plan_of("T4", "d12")
    (step,) = (one for one in plan.steps if (one.step, one.action) == ("files", "write"))
    assert step.reason.startswith("block nouveau, load the modules at boot")
    assert "unattended" in step.reason
    given = facts("T4v", "d12", "runfile 535.129.03 proprietary ours dkms")
    given["driver"]["configuration"] = {
        path: config_files.sha256(text)
        for path, text in plan_of("T4v", "d12", "-", "run=535.129.03-grid").files.items()
    }
    options = read_options({"licence": {"feature_type": 1}})
    again = plan_driver(given, *options)
    (step,) = (one for one in again.steps if (one.step, one.action) == ("files", "write"))
    assert step.reason == "licence of the guest"


def test_every_file_of_a_plan_has_a_purpose():
    assert {*config_files.PATHS} - {*config_files.PURPOSES} == {config_files.TOKEN}


def test_licence_files_of_ours_go_with_their_options():
    given = facts("T4v", "d12", "runfile 535.129.03 proprietary ours dkms")
    there = {config_files.GRIDD: "ab", config_files.TOKEN: "cd"}
    given["driver"]["configuration"] = there

    def removed(licence):
        plan = plan_driver(given, *read_options({"licence": licence}))
        found = [step.detail for step in plan.steps if (step.step, step.action) == REMOVED]
        return found[0].split(", ") if found else []

    # Without a record they are the admin's.
    assert removed({}) == []
    given["driver"]["recorded_files"] = list(there)
    assert removed({}) == list(there)
    assert removed({"token_path": "/srv/token.tok"}) == [config_files.GRIDD]
    assert removed({"server": "dls.example.com", "token_path": "/srv/token.tok"}) == []


REMOVED = ("files", "remove")


def test_a_plan_that_is_shown_has_no_secret():
    link = "https://me:secret@x.example/NVIDIA-Linux-x86_64-580.126.09.run?signature=secret"
    plan = plan_of("T4", "d12", runfile={"url": link, "checksum": f"sha256: {link}"})
    # The work is done by the plan itself.
    assert plan.runfile["url"] == link
    found = plan.to_json()
    assert found["runfile"]["url"] == "https://***@x.example/NVIDIA-Linux-x86_64-580.126.09.run?***"
    assert "secret" not in json.dumps(found)


def test_files_are_compared_by_checksum():
    given = facts("T4", "u24", "distro 580.126.09 open held ours")
    options = read_options({"module_options": {"NVreg_EnableGpuFirmware": 0}})
    plan = plan_driver(given, *options)
    node = made_so(given, plan)
    assert not plan_driver(node, *options).change
    node["driver"]["configuration"][config_files.UDEV] = "0" * 64
    again = plan_driver(node, *options)
    assert [(step.step, step.detail) for step in again.steps] == [("files", config_files.UDEV)]
    assert not again.initramfs
    # What may not be read is taken as right; what is no longer requested goes.
    node["driver"]["configuration"][config_files.UDEV] = None
    assert not plan_driver(node, *options).change
    again = plan_driver(node, *read_options({}))
    first = again.steps[0]
    assert (first.step, first.action, first.detail) == ("files", "remove", config_files.OPTIONS)
    assert again.initramfs


def test_module_options_follow_debians_renamed_modules():
    options = {"module_options": {"NVreg_RestrictProfilingToAdminUsers": False}}
    text = plan_of("V100", "d13", **options).files[config_files.OPTIONS]
    assert "options nvidia-current NVreg_RestrictProfilingToAdminUsers=0\n" in text
    assert "options nvidia-current-open NVreg_RestrictProfilingToAdminUsers=0\n" in text
    assert "current" not in plan_of("V100", "d12", **options).files[config_files.OPTIONS]


def test_a_service_that_died_is_started():
    given = facts("T4", "u24", "distro 580.126.09 open held ours")
    options = read_options({})
    node = made_so(given, plan_driver(given, *options))
    node["driver"]["services"]["nvidia-persistenced"] = "failed"
    again = plan_driver(node, *options)
    assert [(step.step, step.detail) for step in again.steps] == [
        ("service", "nvidia-persistenced")
    ]
    node["driver"]["services"]["nvidia-persistenced"] = None
    assert not plan_driver(node, *options).change


def kernels(given, *rows):
    """(version, headers, driver), the first is running."""
    given["kernels"] = [
        {"version": version, "running": not number, "on_disk": True, "headers": headers,
         "driver": driver}
        for number, (version, headers, driver) in enumerate(rows)
    ]  # fmt: skip
    given["os"]["kernel"] = rows[0][0]


def test_a_new_kernel_without_module_gets_one():
    given = facts("T4", "d12", "nvidia 580.126.09 open held ours dkms")
    node = made_so(given, plan_driver(given, *read_options({})))
    kernels(
        node, ("6.1.0-40-amd64", True, "580.126.09"), ("6.1.0-41-amd64", False, None)
    )  # fmt: skip
    plan = plan_driver(node, *read_options({}))
    assert [(s.step, s.detail) for s in plan.steps] == [("kernel", "6.1.0-41-amd64")]
    assert "linux-headers-6.1.0-41-amd64" in plan.optional_packages
    assert "linux-headers-amd64" in plan.packages
    # An older one is nobody's next boot.
    kernels(
        node, ("6.1.0-40-amd64", True, "580.126.09"), ("6.1.0-9-amd64", False, None)
    )  # fmt: skip
    assert not plan_driver(node, *read_options({})).change


def test_an_admins_driver_is_warned_of_for_a_new_kernel():
    given = facts("T4", "d12", "nvidia 580.126.09 open dkms")
    kernels(
        given, ("6.1.0-40-amd64", True, "580.126.09"), ("6.1.0-41-amd64", False, None)
    )  # fmt: skip
    plan = plan_driver(given, *read_options({}))
    assert not plan.change and any("6.1.0-41-amd64" in text for text in plan.warnings)


def test_the_upgraded_kernel_that_runs_without_headers_gets_them():
    given = facts("T4", "d12", "nvidia 580.126.09 open held ours dkms")
    node = made_so(given, plan_driver(given, *read_options({})))
    kernels(
        node, ("6.1.0-41-amd64", False, None), ("6.1.0-40-amd64", True, "580.126.09")
    )  # fmt: skip
    node["driver"]["loaded"] = None
    plan = plan_driver(node, *read_options({}))
    assert [(s.step, s.detail) for s in plan.steps] == [
        ("kernel", "6.1.0-41-amd64"),
        ("load", "580.126.09"),
    ]


def test_in_a_container_only_the_kernels_of_its_disk_count():
    given = facts("T4", "d12", "nvidia 580.126.09 open held ours dkms")
    node = made_so(given, plan_driver(given, *read_options({})))
    kernels(
        node, ("6.18.44-host", False, None), ("6.1.0-40-amd64", True, "580.126.09")
    )  # fmt: skip
    node["kernels"][0]["on_disk"] = False
    node["driver"]["loaded"] = None
    plan = plan_driver(node, *read_options({}))
    assert not plan.change and not plan.load
    assert plan.reboot["required"] and "6.18.44-host" in plan.reboot["reason"]


def test_reboot():
    plan = plan_of("T4", "u24", "distro 580.126.09 open held loaded=580.95.05")
    assert not plan.change and plan.reboot["required"]
    assert "580.95.05 is loaded" in plan.reboot["reason"]
    assert not plan_of("T4", "u24", "distro 580.126.09 open held").reboot["required"]
    assert plan_of("T4", "u24", "distro 580.126.09 open", "595").reboot["required"]
    assert plan_of("T4", "u24", "distro 580.126.09 open", "proprietary").reboot["required"]
    assert not plan_of("T4", "u24").reboot["required"]
    given = facts("T4", "u24")
    given["nouveau"]["loaded"] = True
    assert "nouveau" in plan_driver(given, *read_options({})).reboot["reason"]


def test_nova_in_the_way_of_a_driver_is_named():
    given = facts("T4", "u24")
    given["nouveau"] = {"loaded": True, "blocked": True, "modules": ["nova_core"]}
    plan = plan_driver(given, *read_options({}))
    assert plan.reboot["required"] and plan.reboot["reason"].startswith("nova_core is loaded")


def test_a_change_that_was_begun_is_finished():
    given = facts("T4", "u24", "distro 580.126.09 open held")
    given["driver"]["pending"] = "install"
    plan = plan_driver(given, *read_options({}))
    assert plan.change and ("driver", "finish") in [(s.step, s.action) for s in plan.steps]
    plan = plan_driver(given, *read_options({"state": "absent"}))
    assert plan.action == "remove"


def test_packages_that_are_not_yet_configured_are_no_driver_of_somebody_else():
    """dpkg is at work for a run that was killed: the module is built, no package is there yet."""
    given = facts("T4", "u24", "distro 580.126.09 open")
    given["driver"].update(source=None, packages={}, held=None, unheld=[], pending="install")
    plan = plan_driver(given, *read_options({"version": "580.126.09"}))
    assert (plan.action, plan.hold) == ("install", True) and plan.packages
    assert config_files.UNATTENDED in plan.files
    # Where the change that was begun brings no driver, it is one of unknown origin, and kept.
    given["driver"]["pending"] = "configure"
    plan = plan_driver(given, *read_options({"version": "580.126.09"}))
    assert (plan.action, plan.source) == ("none", None)


def test_libraries_alone_are_no_driver():
    given = facts("T4", "u24")
    given["driver"].update(installed="535.288.01", userland="535.288.01")
    plan = plan_driver(given, *read_options({}))
    assert (plan.action, plan.branch) == ("install", "580")


def test_support_ends():
    options = {"branch": "595", "today": "2026-12-01"}
    (warning,) = plan_of("T4", "u24", **options).warnings
    assert "ends on 2027-03-31, in 120 days" in warning
    assert not plan_of("T4", "u24", **{**options, "today": "2026-11-30"}).warnings
    (warning,) = plan_of("T4", "u24", **{**options, "today": "2027-04-01"}).warnings
    assert "ended on 2027-03-31" in warning
    # On the day itself it is still supported, and auto goes by it.
    assert plan_of("T4", "d13", today="2027-03-31").branch == "595"
    # 620 is a long-term branch, but no version of it is known.
    assert plan_of("T4", "d13", today="2027-04-01").branch == "615"
    assert plan_of("T4", "u24", today="2028-07-01").branch == "615"
    known = {"620": {"newest": "620.10.01"}}
    assert plan_of("T4", "d13", today="2026-11-28", branches=known).branch == "620"
    assert plan_of("T4", "d13", today="2026-11-28").branch == "595"


def test_a_new_branch_needs_no_release():
    plan = plan_of("T4", "d13", branches={"999": {"kind": "ltsb", "end": "2030-06-30"}})
    assert (plan.branch, plan.kernel_module, plan.source) == ("999", "open", "nvidia")
    plan = plan_of("NEW", "u24", gpus={"3a00": {"first": 615, "last": 615}})
    assert plan.branch == "615" and not plan.warnings
    row = {"branches": ["550"], "components": ["contrib"]}
    plan = plan_of("T4", "d11", repositories={"debian11-archive": row})
    assert (plan.action, plan.branch, plan.source) == ("install", "550", "distro")
    plan = plan_of("T4", "u24", repositories={"ubuntu2404-archive": {"branches": [595]}})
    assert plan.branch == "580" and plan.source == "nvidia"


def test_state_absent_takes_our_files_along():
    given = facts("T4", "u24", "distro 580.126.09 open held ours")
    node = made_so(given, plan_driver(given, *read_options({})))
    plan = plan_driver(node, *read_options({"state": "absent"}))
    assert plan.action == "remove" and plan.initramfs
    assert "nvidia-utils-580-server" in plan.obsolete
    assert plan.reboot["required"]
    assert plan.files == {} and plan.services == {}


def test_an_entry_for_debians_archive_that_apt_would_refuse_is_not_planned():
    """Seen with apt 2.6: an entry without Signed-By after one with it makes both useless."""
    given = facts("V100", "d13")
    given["os"]["archive"].update(signed_by=None, file="/etc/apt/sources.list.d/main.list")
    plan = plan_driver(given, *read_options({}))
    assert plan.action == "refuse" and "main.list" in plan.reasons[0]
    given["os"]["archive"]["file"] = "/etc/apt/sources.list"
    assert plan_driver(given, *read_options({})).action == "install"
    given["os"]["archive"]["uri"] = "http://***@mirror.example/debian"
    assert "password" in plan_driver(given, *read_options({})).reasons[0]


# What a review found.


def proven(given, devices):
    given["nvml"] = {
        "driver_version": given["driver"]["installed"],
        "cuda_version": None,
        "devices": [{}] * devices,
    }
    return given


@pytest.mark.parametrize(
    ("gpus", "on", "stands", "why"),
    [
        ("GH200", "u24 arm", "nvidia 535.104.05 open", "needs driver 535.129.03"),
        ("B200", "u24", "nvidia 570.86.15 open", "needs driver 570.133.20"),
        ("NEW", "u24", "nvidia 595.58.03 proprietary", "proprietary kernel modules"),
    ],
)
def test_a_driver_that_is_seen_to_serve_all_gpus_stays_whatever_the_data_say(gpus, on, stands, why):
    options = read_options({})
    given = facts(gpus, on, stands)
    plan = plan_driver(given, *options)
    assert plan.change and why in next(s.reason for s in plan.steps if s.action == plan.action)
    assert plan_driver(proven(given, 0), *options).change
    plan = plan_driver(proven(given, 1), *options)
    assert (plan.action, plan.change) == ("none", False)


def test_a_driver_that_goes_says_why():
    plan = plan_of("V100", "u24", "nvidia 595.58.03 open unloaded")
    assert plan.action == "downgrade"
    step = next(step for step in plan.steps if step.action == "downgrade")
    assert step.reason.startswith(
        "595.58.03 is there, but Tesla V100-PCIE-32GB at 0000:3b:00.0 (volta) is served up to "
        "branch 580. Branch 580"
    )


def test_previous_says_that_it_was_there_before():
    plan = plan_of("T4", "u24", "nvidia 595.58.03 open ours prev=580.126.09", "previous")
    assert plan.reasons[0].startswith("Version 580.126.09 was installed before the last change")
    assert "requested" not in " ".join(plan.reasons)
    plan = plan_of("T4", "u24", "-", "580.126.09")
    assert plan.reasons[0].startswith("Version 580.126.09 was requested; its branch is 580")


# Of one branch, as dependencies bring them: they are requested by no name.
ALONG = {
    "distro": ("libnvidia-gl-{b}-server", "nvidia-firmware-{b}-server-{v}"),
    "nvidia": ("libnvidia-gl-{b}", "nvidia-firmware-{b}-{v}", "nvidia-kernel-common-{b}"),
}


@pytest.mark.parametrize("on", ["u22", "u24"])
@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        ("distro", "580.126.09", "595.58.03"),
        ("nvidia", "570.211.01", "580.126.09"),
        # To names without a branch, and back.
        ("nvidia", "580.126.09", "595.58.03"),
    ],
)
def test_a_rollback_over_branches_leaves_the_packages_that_were_there(on, source, old, new):
    """The rollback of an upgrade: dpkg has the names of before, none beside, none too few."""

    def bring(given, version):
        branch = version.partition(".")[0]
        plan = plan_driver(given, *read_options(request(f"{source} {version}")))
        assert plan.change, plan.reasons
        node = made_so(given, plan)
        if source == "distro" or int(branch) < 590:
            for name in ALONG[source]:
                node["driver"]["packages"][name.format(b=branch, v=version)] = f"{version}-1"
        return node

    before = bring(facts("T4", on), old)
    assert any("-firmware-" in name for name in before["driver"]["packages"])
    after = bring(before, new)
    branch = old.partition(".")[0]
    assert not [name for name in after["driver"]["packages"] if f"-{branch}" in name]
    after["driver"]["previous"] = {
        "version": old, "branch": branch, "source": source,
        "kernel_module": before["driver"]["kernel_module"],
    }  # fmt: skip
    plan = plan_driver(after, *read_options(request("previous")))
    back = made_so(after, plan)
    along = {name.format(b=branch, v=old): f"{old}-1" for name in ALONG[source]}
    assert {**back["driver"]["packages"], **along} == before["driver"]["packages"]


@pytest.mark.parametrize(
    ("stands", "headers"),
    [("distro 580.126.09 open held ours", False), ("nvidia 580.126.09 open held ours", True)],
)
def test_a_new_kernel_takes_headers_only_where_the_module_is_built_here(stands, headers):
    given = facts("T4", "u24", stands)
    kernel = {"version": "6.8.0-110-generic", "running": False, "on_disk": True, "headers": False}
    given["kernels"].append({**kernel, "driver": None})
    plan = plan_driver(given, *read_options({}))
    step = next(step for step in plan.steps if step.step == "kernel")
    assert step.detail == "6.8.0-110-generic"
    assert ("linux-headers-generic" in plan.packages) == headers
    assert ("no headers" in step.reason) == headers
    modules = "linux-modules-nvidia-580-server-open-6.8.0-110-generic"
    assert (modules in plan.optional_packages) != headers


def test_a_system_of_no_table_can_be_described():
    rows = {
        "linuxmint22": {
            **{"folder": "ubuntu2404", "key": "3bf863cc.pub", "first": "550"},
            "key_fingerprints": ["EB693B3035CD5710E231E123A4B469963BF863CC"],
        }
    }
    plan = plan_of("T4", "mint", repositories=rows)
    assert (plan.action, plan.source) == ("install", "nvidia")
    assert plan.repository["url"].endswith("/cuda/repos/ubuntu2404/x86_64")
    assert "nvidia-open-580" in plan.packages


def test_a_release_of_debian_can_be_described():
    given = facts("T4", "d13")
    given["os"].update(version="99", codename="unnamed")
    rows = {"debian99-archive": {"branches": [595]}}
    plan = plan_driver(given, *read_options({"repositories": rows}))
    assert (plan.branch, plan.source) == ("595", "distro")
    assert plan.repository["components"] == ["contrib", "non-free", "non-free-firmware"]
