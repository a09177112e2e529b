# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import hashlib
import itertools
import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.config_files import (
    LOADER,
    PROFILE,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.plan import plan_cuda
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.cuda_releases import (
    FIRST_CUDA,
    LAST_CUDA,
)
from tests.unit.fixtures.node_facts import P4, node

T4 = {**P4, "generation": "turing", "product": "Tesla T4", "device_id": "1eb8"}
REPOSITORY = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64"
RUN = "cuda_12.2.2_535.104.05_linux.run"
SHA = "sha256:" + "a" * 64


def gpu_node(driver="580.95.05", **changes):
    changes.setdefault("gpus", [T4])
    return node(driver__loaded=driver, driver__installed=driver, **changes)


def plan(facts=None, **options):
    request, tables = read_options(options)
    result = plan_cuda(gpu_node() if facts is None else facts, request, tables).to_json()
    json.dumps(result)
    return result


def toolkit(version, source="package", default=False, **more):
    path = "/usr/local/cuda-" + ".".join(version.split(".")[:2])
    return {
        "version": version,
        "path": path,
        "default": default,
        "source": source,
        "uninstaller": f"{path}/bin/cuda-uninstaller" if source == "runfile" else None,
        **more,
    }


def entry(uri=REPOSITORY, key="EB693B3035CD5710E231E123A4B469963BF863CC"):
    return {
        "file": "/etc/apt/sources.list.d/kubegpu-nvidia-cuda.sources",
        "uri": uri,
        "key_fingerprint": key,
        "key_fingerprints": [key],
        "signed_by": "/etc/apt/keyrings/kubegpu-nvidia-cuda.asc",
        "enabled": True,
    }


def converged(result, facts):
    """Return the facts of the node as the plan would leave it."""
    after = copy.deepcopy(facts)
    cuda = after["cuda"]
    for one in result["versions"]:
        if one["source"] == "distro":
            continue
        cuda["toolkits"] = [kit for kit in cuda["toolkits"] if kit["path"] != one["path"]]
        release = one["version"] if one["version"].count(".") > 1 else one["version"] + ".1"
        cuda["toolkits"].append(toolkit(release, one["source"]))
    for kit in cuda["toolkits"]:
        if result["link"]:
            kit["default"] = kit["path"] == result["link"]["target"]
    for name, version in result["packages"].items():
        text = version or f"{name.rpartition('-')[0][13:].replace('-', '.')}.1-1"
        cuda["packages"][name] = text.replace("-*", "-1").replace("*", "-1")
    cuda["unheld"] = [] if result["hold"] else list(cuda["packages"])
    cuda["held"] = result["hold"]
    for path, text in result["files"].items():
        cuda["configuration"][path] = hashlib.sha256(text.encode()).hexdigest()
    if result["repository"]:
        after["repositories"].append(
            {
                **entry(result["repository"]["url"]),
                "key_fingerprint": next(iter(result["repository"]["key_fingerprints"]), None),
                "key_fingerprints": result["repository"]["key_fingerprints"],
                "file": f"/etc/apt/sources.list.d/{result['repository']['name']}.sources",
            }
        )
    return after


def actions(result):
    return [(step["step"], step["action"]) for step in result["steps"]]


def test_nothing_is_asked_for():
    result = plan()
    assert (result["action"], result["change"], result["steps"]) == ("none", False, [])
    assert "containers bring their own" in result["reasons"][0]


def test_a_node_without_a_gpu_of_nvidia():
    assert plan(gpu_node(gpus=[]), versions=["12.9"])["change"] is False


def test_two_versions_side_by_side_by_package():
    result = plan(versions=["12.9", "13.0"], default="12.9")
    assert result["action"] == "install" and result["change"]
    assert result["packages"] == {"cuda-toolkit-12-9": None, "cuda-toolkit-13-0": None}
    assert result["default"] == "12.9"
    assert result["link"] == {"path": "/usr/local/cuda", "target": "/usr/local/cuda-12.9"}
    assert [one["version"] for one in result["versions"]] == ["13.0", "12.9"]
    assert {one["architecture"] for one in result["versions"]} == {"sm_75"}
    assert result["repository"]["url"] == REPOSITORY
    assert result["repository"]["suite"] == "/"
    assert result["repository"]["key_url"] == f"{REPOSITORY}/3bf863cc.pub"
    assert set(result["lock"]["patterns"]) == {
        *result["packages"],
        *("cuda-*-13-0", "lib*-13-0", "cuda-*-12-9", "lib*-12-9"),
    }
    assert actions(result) == [
        ("repository", "add"),
        ("packages", "install"),
        ("packages", "install"),
        ("default", "set"),
        ("files", "write"),
        ("files", "write"),
    ]
    assert result["files"][LOADER].splitlines()[1:] == [
        "/usr/local/cuda/lib64",
        "/usr/local/cuda-13.0/lib64",
    ]


def test_the_driver_in_the_package_cuda_is_never_asked_for():
    names = set(plan(versions=["12.9", "13.0", "11.8"])["packages"])
    assert not names & {"cuda", "cuda-12-9", "cuda-runtime-12-9", "cuda-drivers"}


REQUESTS = {
    "one": {"versions": ["12.9"]},
    "two": {"versions": ["12.9", "13.0"]},
    "exact": {"versions": ["12.4.1"]},
    "older default": {"versions": ["12.9", "13.0"], "default": "12.9"},
    "no default": {"versions": ["12.9"], "default": "none"},
    "not held": {"versions": ["12.9"], "hold": False},
    "not configured": {"versions": ["12.9"], "configure": False},
    "runfile": {"versions": ["12.2"], "runfiles": {"12.2": {"path": f"/x/{RUN}", "checksum": SHA}}},
    "both": {
        "versions": ["12.9", "12.2"],
        "runfiles": {"12.2": {"url": f"https://x.example/{RUN}", "checksum": SHA}},
    },
    "libraries": {"versions": ["12.9"], "libraries": {"cudnn": "", "nccl": "2.28.3"}},
    "mirror": {
        "versions": ["12.9"],
        "repository_url": "https://mirror.example/cuda/debian12/x86_64",
    },
    "no repository": {"versions": ["12.9"], "manage_repository": False},
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_node_that_is_as_planned_needs_nothing(name):
    facts = gpu_node()
    first = plan(facts, **REQUESTS[name])
    assert first["action"] == "install" and first["change"]
    second = plan(converged(first, facts), **REQUESTS[name])
    assert (second["action"], second["change"], second["steps"]) == ("none", False, [])
    # What is to be there is still said.
    for key in ("packages", "files", "link", "default"):
        assert second[key] == first[key]


@pytest.mark.parametrize("name", REQUESTS)
def test_what_drifts_is_seen(name):
    facts = gpu_node()
    first = plan(facts, **REQUESTS[name])
    good = converged(first, facts)
    seen = 0
    for path in first["files"]:
        for value in ("0" * 64, None):
            bad = copy.deepcopy(good)
            bad["cuda"]["configuration"][path] = value
            assert plan(bad, **REQUESTS[name])["change"] is (value is not None)
            seen += 1
        del bad["cuda"]["configuration"][path]
        assert plan(bad, **REQUESTS[name])["steps"][0]["detail"] == path
    for package in first["packages"]:
        bad = copy.deepcopy(good)
        bad["cuda"]["unheld"] = [package] if first["hold"] else []
        verb = "hold" if first["hold"] else "unhold"
        assert actions(plan(bad, **REQUESTS[name])) == [("packages", verb)]
        bad = copy.deepcopy(good)
        del bad["cuda"]["packages"][package]
        assert plan(bad, **REQUESTS[name])["action"] == "install"
        seen += 1
    if first["link"]:
        bad = copy.deepcopy(good)
        for kit in bad["cuda"]["toolkits"]:
            kit["default"] = False
        assert actions(plan(bad, **REQUESTS[name])) == [("default", "set")]
        seen += 1
    assert seen


@pytest.mark.parametrize(
    ("installed", "asked", "action"),
    [
        ("12.4.0-1", "12.4.1", "upgrade"),
        ("12.4.1-1", "12.4.0", "downgrade"),
        ("12.4.1-1", "12.4.1", "none"),
        ("12.4.1-1", "12.4", "none"),
        ("12.4.0-1", "12.4", "none"),
    ],
)
def test_update_of_an_installed_package(installed, asked, action):
    facts = gpu_node(
        cuda__packages={"cuda-toolkit-12-4": installed},
        cuda__toolkits=[toolkit("12.4.20240521", default=True)],
    )
    result = plan(facts, versions=[asked])
    assert result["action"] == action
    if action != "none":
        assert result["packages"] == {"cuda-toolkit-12-4": f"{asked}-*"}


def test_a_library_of_another_version_is_changed():
    facts = gpu_node()
    options = REQUESTS["libraries"]
    good = converged(plan(facts, **options), facts)
    good["cuda"]["packages"]["libnccl2"] = "2.28.9-1+cuda13.0"
    result = plan(good, **options)
    assert actions(result) == [("packages", "change")]
    assert result["packages"]["libnccl2"] == "2.28.3*+cuda12.9"
    assert result["packages"]["libnccl-dev"] == "2.28.3*+cuda12.9"
    assert result["packages"]["cudnn9-cuda-12"] is None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("", "*+cuda12.9"),
        ("2.28", "2.28*+cuda12.9"),
        ("2.28.3", "2.28.3*+cuda12.9"),
        ("2.28.3-1+cuda12.8", "2.28.3-1+cuda12.8"),
    ],
)
def test_nccl_is_the_build_for_the_toolkit(asked, expected):
    result = plan(versions=["12.9"], libraries={"nccl": asked})
    assert result["packages"]["libnccl2"] == expected


def test_cudnn_of_the_earlier_default_goes():
    """Packages of cuDNN for two CUDA versions exclude each other."""
    facts = converged(plan(versions=["12.9"], libraries={"cudnn": ""}), gpu_node())
    names = ["cudnn9-cuda-12", "libcudnn9-cuda-12", "libcudnn9-dev-cuda-12"]
    facts["cuda"]["packages"].update(dict.fromkeys(names, "9.13.0-1"))
    options = {"versions": ["12.9", "13.0"], "libraries": {"cudnn": ""}}
    result = plan(facts, **options)
    assert result["obsolete"] == names
    assert "cudnn9-cuda-13" in result["packages"]
    assert any("replaces cudnn9-cuda-12, lib" in reason for reason in result["reasons"])
    assert plan(facts, default="12.9", **options)["obsolete"] == []
    # An admin's own is left to the package manager, which says what is in the way.
    facts["cuda"]["unheld"] = names
    assert plan(facts, **options)["obsolete"] == []


def test_a_librarys_version_is_compared_by_whole_numbers():
    """9.1 is not 9.10, and package_set sees that too."""
    options = {"versions": ["12.9"], "libraries": {"cudnn": "9.1"}}
    facts = converged(plan(**options), gpu_node())
    facts["cuda"]["packages"]["cudnn9-cuda-12"] = "9.1.1.17-1"
    assert plan(facts, **options)["change"] is False
    facts["cuda"]["packages"]["cudnn9-cuda-12"] = "9.10.2.21-1"
    assert actions(plan(facts, **options)) == [("packages", "change")]


def test_versions_that_are_no_longer_asked_for_are_told():
    facts = converged(plan(versions=["12.9", "13.0"]), gpu_node())
    facts["cuda"]["toolkits"].append(toolkit("12.4.1", "runfile"))
    (text,) = plan(facts, versions=["13.0"])["warnings"]
    assert (
        "CUDA 12.9.1 (/usr/local/cuda-12.9), 12.4.1 (/usr/local/cuda-12.4) is installed but" in text
    )
    assert "13.0" not in text
    (text,) = plan(facts)["warnings"]
    assert "13.0.1 (/usr/local/cuda-13.0)" in text


def test_a_toolkit_of_the_admin_is_not_told():
    facts = converged(plan(versions=["13.0"]), gpu_node())
    facts["cuda"]["toolkits"].append(toolkit("12.9.1"))
    facts["cuda"]["packages"]["cuda-toolkit-12-9"] = "12.9.1-1"
    facts["cuda"]["unheld"] = ["cuda-toolkit-12-9"]
    assert plan(facts, versions=["13.0"])["warnings"] == []
    # Where we never were, nothing is said either.
    assert plan(gpu_node(cuda__toolkits=[toolkit("12.9.1", "runfile")]))["warnings"] == []


def test_libraries_follow_the_default():
    options = {"versions": ["12.9", "13.0"], "libraries": {"cudnn": "9.13.0", "nccl": "2.28.3"}}
    assert plan(**options)["packages"]["libnccl2"].endswith("+cuda13.0")
    result = plan(default="12.9", **options)
    assert result["packages"]["libnccl2"].endswith("+cuda12.9")
    assert result["packages"]["cudnn9-cuda-12"] == "9.13.0*"


@pytest.mark.parametrize("name", REQUESTS)
def test_all_packages_are_locked_where_they_are_held(name):
    result = plan(**REQUESTS[name])
    locked = set(result["lock"]["patterns"])
    assert locked >= set(result["packages"]) if result["hold"] else not locked
    if "libraries" in REQUESTS[name]:
        assert "libcudnn9*-cuda-12" in locked


# Sources.


def test_a_toolkit_of_somebody_else_is_kept_where_it_is_the_version():
    for source in ("runfile", None):
        facts = gpu_node(cuda__toolkits=[toolkit("12.9.1", source, default=True)])
        result = plan(facts, versions=["12.9"], configure=False)
        assert (result["change"], result["packages"]) == (False, {})


def test_a_toolkit_of_somebody_else_in_the_same_folder():
    facts = gpu_node(cuda__toolkits=[toolkit("12.4.0", "runfile")])
    result = plan(facts, versions=["12.4.1"])
    assert result["action"] == "refuse" and not result["change"]
    (text,) = result["reasons"]
    assert "CUDA 12.4.0 is in /usr/local/cuda-12.4" in text
    assert "/usr/local/cuda-12.4/bin/cuda-uninstaller" in text


def test_a_runfile_installs_the_toolkit_only():
    given = {"12.2": {"url": f"https://x.example/{RUN}", "checksum": SHA}}
    result = plan(versions=["12.2"], runfiles=given)
    (entry_,) = result["runfiles"]
    assert entry_["path"] == "/usr/local/cuda-12.2"
    assert "--toolkit" in entry_["arguments"] and "--silent" in entry_["arguments"]
    assert not any("driver" in argument for argument in entry_["arguments"])
    assert result["packages"] == {} and result["repository"] is None
    assert ("runfile", "install") in actions(result)
    link = f"https://me:secret@x.example/{RUN}?signature=secret"
    given = {"12.2": {"url": link, "checksum": link}}
    result = plan(versions=["12.2"], runfiles=given)
    assert result["runfiles"][0]["url"] == f"https://***@x.example/{RUN}?***"
    assert "secret" not in json.dumps(result)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"versions": ["12.2"], "source": "runfile"}, "runfiles has no 12.2"),
        ({"versions": ["12.4"], "runfiles": {"12.4": {"path": RUN, "checksum": SHA}}}, "12.2.2"),
        ({"versions": ["12.2"], "runfiles": {"12.2": {"path": RUN}}}, "checksum"),
        ({"versions": ["12.2"], "runfiles": {"12.2": {"checksum": SHA}}}, "url or path"),
        # From 13.4.1 on NVIDIA's file has no driver.
        (
            {"versions": ["12.2"], "runfiles": {"12.2": {"checksum": SHA}}},
            "cuda_12.2.0_<driver>_linux.run",
        ),
        ({"versions": ["13.4"], "runfiles": {"13.4": {"checksum": SHA}}}, "cuda_13.4.1_linux.run"),
        (
            {"versions": ["12.2"], "runfiles": {"12.2": {"path": RUN, "url": RUN}}},
            "url or path, one of them",
        ),
        ({"versions": ["12.9"], "runfiles": {"12.2": {"path": RUN}}}, "versions does not list"),
        (
            {
                "versions": ["12.2"],
                "runfiles": {"12.2": {"path": RUN.replace("linux", "linux_sbsa"), "checksum": SHA}},
            },
            "is for aarch64",
        ),
        (
            {
                "versions": ["12.2"],
                "runfiles": {
                    "12.2": {"path": "NVIDIA-Linux-x86_64-535.104.05.run", "checksum": SHA}
                },
            },
            "installer of a driver",
        ),
        ({"versions": ["12.4", "12.4.1"]}, "both use /usr/local/cuda-12.4"),
        ({"versions": ["12.7"]}, "not in the table"),
        ({"versions": ["12.9"], "default": "13.0"}, "versions (12.9) does not list"),
        ({"libraries": {"cudnn": ""}}, "without a CUDA version"),
        ({"versions": ["12.9"], "libraries": {"cudnn": "8.9.7"}}, "cudnn '8.9.7'"),
        ({"versions": ["12.9"], "libraries": {"nccl": "new"}}, "2.28.3-1+cuda12.9"),
        ({"versions": ["12.9"], "repository_name": "nvidia"}, "kubegpu-"),
        ({"versions": ["12.4"], "source": "distro"}, "itself has CUDA 11.8"),
        (
            {"versions": ["11.8"], "source": "distro", "libraries": {"cudnn": ""}},
            "source: distro does not use",
        ),
    ],
)
def test_refusals_name_what_would_do(options, words):
    result = plan(**options)
    assert (result["action"], result["change"], result["steps"]) == ("refuse", False, [])
    assert words in result["reasons"][0]
    assert "Next step" in result["reasons"][0]


def on_rpm(identity, version, manager="dnf", family="rhel"):
    return {
        **node()["os"],
        **{"id": identity, "version": version, "package_manager": manager, "family": family},
        "archive": None,
    }


@pytest.mark.parametrize(
    ("system", "folder", "key"),
    [
        (on_rpm("fedora", "44", "dnf5"), "fedora44", "129994480EC63D2789BC98E490DFED2F73CD9B30"),
        (
            on_rpm("sles", "16.0", "zypper", "suse"),
            "suse16",
            "CF65941A859D4B4E6870F188736A284B3A8B5622",
        ),
    ],
    ids=["fedora44", "suse16"],
)
def test_folders_with_a_key_of_their_own(system, folder, key):
    result = plan(gpu_node("610.57.04", os=system), versions=["13.3"])
    assert f"/{folder}/" in result["repository"]["url"]
    assert result["repository"]["key_url"].endswith(f"/{key[-8:]}.pub")
    assert result["repository"]["key_fingerprints"] == [key]


@pytest.mark.parametrize("system", [on_rpm("almalinux", "10.1"), on_rpm("centos", "10")])
def test_a_key_whose_fingerprint_nobody_knows_has_to_be_given(system):
    facts = gpu_node("610.57.04", os=system)
    result = plan(facts, versions=["13.3"])
    assert result["action"] == "refuse" and "rhel10" in result["reasons"][0]
    given = plan(facts, versions=["13.3"], key_fingerprints=["A" * 40])
    assert given["action"] == "install"
    assert given["repository"]["key_fingerprints"] == ["A" * 40]


@pytest.mark.parametrize(
    ("system", "folder"),
    [
        (on_rpm("rocky", "9.6"), "rhel9"),
        (on_rpm("rhel", "8.10"), "rhel8"),
        (on_rpm("ol", "9.6"), "rhel9"),
        (on_rpm("amzn", "2023"), "amzn2023"),
        (on_rpm("sles", "15.7", "zypper", "suse"), "sles15"),
        (on_rpm("opensuse-leap", "15.6", "zypper", "suse"), "opensuse15"),
        (on_rpm("openeuler", "24.03"), "rhel9"),
        (on_rpm("anolis", "8.10"), "rhel8"),
        (on_rpm("kylin", "V10"), "kylin10"),
        (on_rpm("tencentos", "4.4"), "rhel9"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value['id']}{value['version']}",
)
def test_rpm_packages_come_from_the_drivers_repository(system, folder):
    facts = gpu_node("610.57.04", os=system)
    result = plan(facts, versions=["13.3"], libraries={"cudnn": "", "nccl": "2.28"})
    assert result["action"] == "install", result["reasons"]
    url = f"https://developer.download.nvidia.com/compute/cuda/repos/{folder}/x86_64"
    assert result["repository"]["url"] == url
    assert result["repository"]["key_fingerprints"] == ["610C7B14E068A878070DA4E99CD0A493D42D0685"]
    assert result["packages"] == {
        "cuda-toolkit-13-3": None,
        "cudnn9-cuda-13": None,
        "libnccl": "2.28*+cuda13.3",
        "libnccl-devel": "2.28*+cuda13.3",
    }
    assert [step["step"] for step in result["steps"]][:2] == ["repository", "packages"]
    effort = system["id"] in ("openeuler", "anolis", "kylin", "tencentos")
    assert any("best effort" in text for text in result["warnings"]) == effort
    # The driver's step has set it up, under whatever name.
    again = plan(facts, versions=["13.3"], planned_repositories=[url])
    assert again["repository"] is None


def test_rpm_packages_life():
    facts = gpu_node("610.57.04", os=on_rpm("rocky", "9.6"))
    assert plan(facts, versions=["13.3.1"])["packages"] == {"cuda-toolkit-13-3": "13.3.1-*"}
    base = {"repositories": [], "os": facts["os"]}
    for there, requested, action in (
        ("13.3.0-1", "13.3.1", "upgrade"),
        ("13.3.1-1", "13.3.0", "downgrade"),
        ("13.3.1-1", "13.3.1", "none"),
        ("13.3.1-1", "13.3", "none"),
    ):
        toolkits = [toolkit("13.3.0", "package", default=True)]
        packages = {"cuda-toolkit-13-3": there}
        node_ = gpu_node("610.57.04", **base, cuda__toolkits=toolkits, cuda__packages=packages)
        result = plan(node_, versions=[requested], manage_repository=False)
        assert result["action"] == action, (there, requested, result["reasons"])
        assert result["lock"]["patterns"] == ["cuda-toolkit-13-3", "cuda-*-13-3", "lib*-13-3"]


def test_what_rpm_systems_do_not_have():
    result = plan(gpu_node(os=on_rpm("rocky", "9.6")), versions=["12.9"], source="distro")
    assert result["action"] == "refuse" and "no CUDA of its own" in result["reasons"][0]
    old = on_rpm("rocky", "8.10")
    result = plan(gpu_node(os=old), versions=["12.9"], controller="2.20.1")
    assert result["action"] == "refuse" and "ansible-core 2.21 or later" in result["reasons"][0]
    assert plan(gpu_node(os=old), versions=["12.9"], controller="2.21.1")["action"] == "install"


def test_a_tool_that_is_not_known_is_told_the_runfile():
    system = on_rpm("arch", "", "pacman", None)
    result = plan(gpu_node(os=system), versions=["12.9"])
    assert result["action"] == "refuse" and "give a runfile" in result["reasons"][0]
    assert "pacman" in result["reasons"][0]
    given = {"12.2": {"path": RUN, "checksum": SHA}}
    assert plan(gpu_node(os=system), versions=["12.2"], runfiles=given)["action"] == "install"


def test_the_distributions_own_package():
    archive = {
        "file": "/etc/apt/sources.list.d/debian.sources",
        "uri": "http://mirror.example/debian",
        "suites": ["bookworm"],
        "components": ["main"],
        "signed_by": "/usr/share/keyrings/debian-archive-keyring.gpg",
    }
    facts = gpu_node(os={**node()["os"], "archive": archive, "codename": "bookworm"})
    result = plan(facts, versions=["11.8"], source="distro")
    assert result["packages"] == {"nvidia-cuda-toolkit": None}
    assert result["repository"]["components"] == ["contrib", "non-free"]
    assert result["repository"]["keyring"] == archive["signed_by"]
    assert (result["link"], list(result["files"]), result["default"]) == (None, [PROFILE], None)
    after = converged(result, facts)
    after["cuda"]["packages"] = {"nvidia-cuda-toolkit": "11.8.89~11.8.0-5~deb12u1"}
    assert plan(after, versions=["11.8"], source="distro")["change"] is False
    complete = {**archive, "components": ["main", "contrib", "non-free"]}
    facts["os"]["archive"] = complete
    assert plan(facts, versions=["11.8"], source="distro")["repository"] is None


# GPUs and driver.


@pytest.mark.parametrize(
    ("cuda", "generation"),
    list(itertools.product(("11.8", "12.9", "13.0", "13.4"), LAST_CUDA)),
)
def test_toolkits_that_gpus_cannot_run_are_refused(cuda, generation):
    facts = gpu_node("620", gpus=[{**T4, "generation": generation, "product": "This GPU"}])
    result = plan(facts, versions=[cuda], configure=False)
    last = LAST_CUDA[generation]
    if last and int(cuda.split(".")[0]) > int(last):
        assert result["action"] == "refuse" and "This GPU" in result["reasons"][0]
    else:
        assert result["action"] == "install"
        older = [int(n) for n in cuda.split(".")] < [
            int(n) for n in FIRST_CUDA[generation].split(".")
        ]
        assert any("cannot compile for it" in text for text in result["warnings"]) == older
        assert (result["versions"][0]["architecture"] is None) == older


def test_both_reasons_of_a_refusal_are_said_at_once():
    volta = {**T4, "generation": "volta", "product": "Tesla V100"}
    result = plan(gpu_node("470.57.02", gpus=[volta]), versions=["13.0"])
    assert len(result["reasons"]) == 2
    assert "Tesla V100" in result["reasons"][0]
    assert "Driver 470.57.02" in result["reasons"][1]


@pytest.mark.parametrize(
    ("loaded", "installed", "given", "action"),
    [
        ("470.57.02", "580.95.05", "", "refuse"),
        ("470.57.02", "470.82.01", "", "refuse"),
        ("580.95.05", "470.57.02", "", "install"),
        ("580.95.05", None, "", "install"),
        (None, "470.57.02", "", "refuse"),
        (None, "580.95.05", "", "install"),
        ("470.57.02", "470.57.02", "580", "install"),
        ("580.95.05", "580.95.05", "470", "refuse"),
        (None, None, "", "install"),
    ],
)
def test_which_driver_counts(loaded, installed, given, action):
    facts = node(gpus=[T4], driver__loaded=loaded, driver__installed=installed)
    result = plan(facts, versions=["12.9"], driver_version=given)
    assert result["action"] == action
    assert any("No NVIDIA driver" in text for text in result["warnings"]) == (
        not (loaded or installed or given)
    )
    # The driver that would do is there, and waits for its reboot.
    reboot = any("reboot, and run again" in text for text in result["reasons"])
    assert reboot == ((loaded, installed) == ("470.57.02", "580.95.05"))


# Repository.


def test_a_repository_that_is_there_and_trusted_stays():
    result = plan(gpu_node(repositories=[entry()]), versions=["12.9"])
    assert result["repository"] is None


def test_a_repository_of_the_same_run_is_not_added_twice():
    result = plan(versions=["12.9"], planned_repositories=[REPOSITORY])
    assert result["repository"] is None and result["action"] == "install"


def test_a_repository_with_another_key_or_address_is_replaced():
    for wrong in (
        entry(key="AE09FE4BBD223A84B2CCFCE3F60F4B3D7FA2AF80"),
        entry(REPOSITORY + "/old"),
    ):
        two = [entry(), wrong]
        for entries in ([wrong], two) if wrong["uri"] == REPOSITORY else (two,):
            result = plan(gpu_node(repositories=entries), versions=["12.9"])
            assert actions(result)[0] == ("repository", "replace")


def test_a_mirror_replaces_nvidias_own_and_its_password_is_covered():
    url = "https://user:secret@mirror.example/cuda"
    result = plan(gpu_node(repositories=[entry()]), versions=["12.9"], repository_url=url)
    assert result["repository"]["url"] == "https://***@mirror.example/cuda"
    assert result["repository"]["replaces"] == [REPOSITORY]
    assert "secret" not in json.dumps(result)


def test_a_system_that_nvidias_repository_does_not_have():
    system = {**node()["os"], "version": "99"}
    result = plan(gpu_node(os=system), versions=["12.9"])
    assert result["action"] == "refuse" and "debian 99" in result["reasons"][0]
    mirror = {"repository_url": "https://mirror.example/cuda", "key_fingerprints": ["A" * 40]}
    assert plan(gpu_node(os=system), versions=["12.9"], **mirror)["action"] == "install"


def test_a_repository_that_began_later_is_a_warning():
    system = {**node()["os"], "version": "13"}
    result = plan(gpu_node(os=system), versions=["12.9"])
    assert any("begins with driver branch 590" in text for text in result["warnings"])
    assert not plan(gpu_node(os=system), versions=["13.2"])["repository"]["url"].endswith("12")


# Options.


@pytest.mark.parametrize(
    "options",
    [
        {"versions": {"12.9": None}},
        {"versions": [12.9]},
        {"versions": ["new"]},
        {"versions": ["12.9"], "default": "newest"},
        {"versions": ["12.9"], "source": "apt"},
        {"versions": ["12.9"], "libraries": {"cublas": ""}},
        {"versions": ["12.9"], "libraries": ["cudnn"]},
        {"versions": ["12.9"], "runfiles": {12.2: {}}},
        {"versions": ["12.9"], "runfiles": {"12.2": "/x.run"}},
        {"versions": ["12.9"], "driver_version": "new"},
        {"versions": ["12.9"], "data": {"releases": {"x": "1"}}},
    ],
)
def test_options_that_cannot_be_understood(options):
    with pytest.raises(InputError):
        read_options(options)


def test_a_new_cuda_by_data():
    data = {"releases": {"13.9.0": "640.10"}, "compatible_since": {"13": "580"}}
    result = plan(versions=["13.9"], data=data)
    assert result["packages"] == {"cuda-toolkit-13-9": None}


def test_the_cuda_of_ubuntu_26_04():
    """``nvidia-cuda-toolkit`` of resolute, package index of 2026-11-21."""
    system = {**node()["os"], "id": "ubuntu", "version": "26.04"}
    facts = gpu_node(os=system)
    (reason,) = plan(facts, versions=["13.0"], source="distro")["reasons"]
    assert "ubuntu 26.04 itself has CUDA 12.4, not 13.0" in reason
    assert plan(facts, versions=["12.4"], source="distro")["action"] == "install"


def test_files_are_as_the_facts_hash_them():
    result = plan(versions=["12.9"])
    assert set(result["files"]) == {LOADER, PROFILE}


def test_the_cuda_of_a_distribution_is_data_that_the_user_can_correct():
    request = {"versions": ["12.4"], "source": "distro"}
    assert "itself has CUDA 11.8" in plan(**request)["reasons"][0]
    assert plan(**request, data={"distributions": {"debian12": "12.4.1"}})["action"] == "install"


def libc(version, name="glibc"):
    return {"os__libc": {"name": name, "version": version}}


@pytest.mark.parametrize(("cuda", "facts", "said"), [
    ("12.9", libc("2.41"), "CUDA 13.0"), ("12.8", libc("2.42"), "CUDA 13.2"),
    ("13.1", libc("2.43"), "CUDA 13.2"), ("13.0", libc("2.41"), ""), ("13.2", libc("2.43"), ""),
    ("12.9", libc("2.40"), ""), ("12.9", libc(None, "musl"), ""), ("12.9", libc(None), ""),
    ("12.9", {"os__libc": None}, ""),
])  # fmt: skip
def test_a_toolkit_that_does_not_compile_with_this_glibc_is_refused(cuda, facts, said):
    """cuda-samples 378, llama.cpp 23205: nobody learns it before the packages are there."""
    result = plan(gpu_node("615.71.09", **facts), versions=[cuda])

    assert (result["action"] == "refuse") == bool(said)
    if said:
        (refusal,) = result["refusals"]
        assert f"does not compile with glibc {facts['os__libc']['version']}" in refusal["cause"]
        assert said in refusal["next_step"] and "verify: false" in refusal["next_step"]
        assert not result["change"]


def test_without_the_compiler_test_it_is_a_warning():
    facts = gpu_node("615.71.09", **libc("2.41"))
    result = plan(facts, versions=["12.9"], verify=False)
    assert result["action"] == "install"
    assert [text for text in result["warnings"] if "glibc 2.41" in text and "Next step" in text]

    # What is there is not asked again.
    after = converged(result, facts)
    for verify in (True, False):
        again = plan(after, versions=["12.9"], verify=verify)
        assert (again["action"], again["warnings"]) == ("none", [])


def test_a_card_that_newer_cudas_have_dropped_compiles_in_a_container():
    result = plan(gpu_node("580.95.05", gpus=[P4], **libc("2.41")), versions=["12.9"])

    (refusal,) = result["refusals"]
    assert "in a container" in refusal["next_step"] and "dropped pascal" in refusal["next_step"]
    assert "ask for" not in refusal["next_step"]


def test_a_distribution_builds_its_cuda_for_its_own_glibc_and_compiler():
    facts = gpu_node(os__version="13", os__codename="trixie", cuda__host_compilers=[14],
                     **libc("2.41"))  # fmt: skip
    result = plan(facts, versions=["12.4"], source="distro")

    assert result["action"] == "install"


@pytest.mark.parametrize(("cuda", "compilers", "options", "said"), [
    ("11.8", [12], {}, "gcc up to 11"), ("12.5", [14], {}, "gcc up to 13"),
    ("12.1", [13, 14], {}, "gcc up to 12"), ("13.3", [16], {}, "gcc up to 15"),
    ("13.4", [16], {}, ""), ("12.9", [14], {}, ""),
    # An older one is there, is named, or comes with the packages.
    ("11.8", [11, 12], {}, ""), ("11.8", [12], {"host_compiler": "/opt/gcc-11/bin/g++"}, ""),
    ("11.8", [], {}, ""),
    # The table does not know the release, and then it does.
    ("13.6", [18], {"data": {"releases": {"13.6.0": "620.10"}}}, ""),
    ("13.6", [18], {"data": {"releases": {"13.6.0": "620.10"}, "gcc": {"13.6": "17"}}},
     "gcc up to 17"),
])  # fmt: skip
def test_a_toolkit_that_does_not_take_the_nodes_compiler_is_refused(cuda, compilers, options, said):
    facts = gpu_node("625.10", cuda__host_compilers=compilers)
    result = plan(facts, versions=[cuda], **options)

    assert (result["action"] == "refuse") == bool(said), result["reasons"]
    if said:
        (refusal,) = result["refusals"]
        assert said in refusal["cause"] and f"g++ {compilers[0]}" in refusal["cause"]
        number = said.rpartition(" ")[2]
        assert f"install g++-{number}" in refusal["next_step"]


def test_another_c_library_is_data():
    options = {"versions": ["12.9"], "data": {"glibc": {"2.41": "12.9"}}}
    assert plan(gpu_node(**libc("2.41")), **options)["action"] == "install"
    with pytest.raises(InputError, match="glibc"):
        read_options({"versions": ["12.9"], "data": {"glibc": {"2.41": "new"}}})
    with pytest.raises(InputError, match="gcc"):
        read_options({"versions": ["12.9"], "data": {"gcc": {"13.6": "17.1"}}})
