# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What settings of the node decide: SELinux, CPU manager, CDI's version, the driver's root."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import POSSIBLE
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import explain
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.predicates import (
    PREDICATES,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.toolkit_paths import (
    OPERATOR_CONFIG,
)

UNKNOWN = "Failed to initialize NVML: Unknown Error"
DENIED = "Failed to initialize NVML: Insufficient Permissions"
NO_LIBRARY = (
    "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot "
    "open shared object file: no such file or directory"
)
PODMAN = "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all"
DOCKER = (
    "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices "
    "nvidia.com/gpu=all"
)
CRI = (
    "Error: failed to create containerd container: CDI device injection failed: unresolvable CDI "
    "devices nvidia.com/gpu=all"
)
CONFIG = "/etc/nvidia-container-runtime/config.toml"


def selinux(mode):
    return {"selinux": {"mode": mode, "configured": None}}


def kubelet(policy):
    return {"kubelet": {"directory": "/var/lib/kubelet", "cpu_manager_policy": policy}}


def roots(root, userland="580.95.05", container=None, path=CONFIG):
    return {
        "driver": {"userland": userland, "container": container},
        "container_toolkit": {"driver_roots": {path: root}},
    }


def cdi(version="0.7.0", kind="nvidia.com/gpu", podman=None, **engines):
    spec = {"path": "/var/run/cdi/nvidia.yaml", "kind": kind, "version": version}
    runtimes = dict.fromkeys(("containerd", "docker", "crio"))
    runtimes.update({name: {"version": one} for name, one in engines.items()})
    return {"cdi_specifications": [spec], "runtimes": runtimes, "podman": podman}


@pytest.mark.parametrize(("name", "facts", "answer"), [
    ("selinux_enforcing", {}, None), ("selinux_enforcing", selinux(None), None),
    ("selinux_enforcing", selinux("enforcing"), True),
    ("selinux_enforcing", selinux("permissive"), False),
    ("selinux_enforcing", selinux("disabled"), False),
    ("static_cpu_manager", {}, None), ("static_cpu_manager", kubelet(None), None),
    ("static_cpu_manager", kubelet("static"), True), ("static_cpu_manager", kubelet("none"), False),
    # A node without a kubelet.
    ("static_cpu_manager", {"kubelet": None}, False),
    ("toolkit_root_elsewhere", {}, None),
    ("toolkit_root_elsewhere", {"container_toolkit": {"driver_roots": {CONFIG: "/x"}}}, None),
    ("toolkit_root_elsewhere", roots("/run/nvidia/driver"), True),
    ("toolkit_root_elsewhere", roots("/"), False), ("toolkit_root_elsewhere", roots("//"), False),
    # The driver is in the container, or on its way.
    ("toolkit_root_elsewhere", roots("/run/nvidia/driver", None), False),
    ("toolkit_root_elsewhere", roots("/run/nvidia/driver", container="/run/nvidia/driver"), False),
    ("cdi_newer_than_engine", {}, None),
    ("cdi_newer_than_engine", {"container_toolkit": {"cdi_spec": None}}, False),
    ("cdi_newer_than_engine", cdi(), None),
    ("cdi_newer_than_engine", cdi(containerd="1.7.13"), True),
    ("cdi_newer_than_engine", cdi(containerd="1.7.16"), False),
    ("cdi_newer_than_engine", cdi("0.5.0", containerd="1.7.13"), False),
    ("cdi_newer_than_engine", cdi(None, containerd="1.7.13"), False),
    ("cdi_newer_than_engine", cdi(kind="example.com/x", containerd="1.7.13"), False),
    ("cdi_newer_than_engine", cdi(containerd="1.7.13", docker="25.0.3"), True),
    # Which of the engines said it is not known; nor what a release before CDI reads.
    ("cdi_newer_than_engine", cdi(containerd="1.7.13", docker="29.3.0"), None),
    ("cdi_newer_than_engine", cdi(containerd="1.6.20"), None),
    ("cdi_newer_than_engine", cdi(containerd=None), None),
    ("cdi_newer_than_docker", cdi(containerd="1.7.13", docker="29.3.0"), False),
    ("cdi_newer_than_docker", cdi(containerd="2.1.0", docker="26.0.0"), True),
    ("cdi_newer_than_docker", cdi(containerd="2.1.0"), None),
    ("cdi_newer_than_podman", cdi(containerd="2.1.0", podman="4.9.3"), True),
    ("cdi_newer_than_podman", cdi(containerd="1.7.1", podman="5.4.2"), False),
    ("cdi_newer_than_podman", cdi(containerd="1.7.1"), None),
])  # fmt: skip
def test_predicates(name, facts, answer):
    assert PREDICATES[name](facts) is answer


@pytest.mark.parametrize(("text", "facts", "code"), [
    (DENIED, selinux("enforcing"), "selinux_denies_devices"),
    (DENIED, selinux("permissive"), "nvml_permissions"),
    (UNKNOWN, {**kubelet("static"), "container_toolkit": {"config": {}}}, "cpu_manager_static"),
    (NO_LIBRARY, roots("/run/nvidia/driver"), "toolkit_root_elsewhere"),
    (NO_LIBRARY, roots("/run/nvidia/driver", path=OPERATOR_CONFIG), "operator_root_elsewhere"),
    (NO_LIBRARY, roots("/"), "driver_libraries_missing"),
    (PODMAN, cdi(podman="4.9.3"), "cdi_version"),
    (PODMAN, cdi(podman="5.4.2", containerd="1.7.13"), "cdi_device_unknown"),
    (CRI, cdi(containerd="1.7.13"), "cdi_version"),
    (CRI, cdi(containerd="2.1.0", podman="4.9.3", docker="26.1.0"), "cdi_device_unknown"),
])  # fmt: skip
def test_facts_decide(text, facts, code):
    found = explain(text, facts, seen={"just_started": False, "rootless": False})

    if (text, code) == (CRI, "cdi_device_unknown"):
        # The engines differ: containerd may have said it, or Podman.
        assert found[0].confidence == POSSIBLE and found[0].alternatives == ("cdi_version",)
        return
    assert [one.code for one in found] == [code] and found[0].confidence != POSSIBLE


def test_docker_is_judged_by_its_own_release():
    facts = cdi(docker="26.0.0", containerd="2.1.0")
    (found,) = explain(DOCKER, facts, seen={"rootless": False})
    assert found.code == "cdi_version" and found.confidence != POSSIBLE
    facts = cdi(docker="26.1.0", containerd="1.7.13")
    (found,) = explain(DOCKER, facts, seen={"rootless": False})
    assert found.code == "cdi_device_unknown" and found.confidence != POSSIBLE


@pytest.mark.parametrize(("text", "first", "others"), [
    (DENIED, "selinux_denies_devices", {"nvml_permissions"}),
    (NO_LIBRARY, "driver_libraries_missing", {"toolkit_root_elsewhere", "operator_root_elsewhere"}),
    (PODMAN, "cdi_device_unknown", {"cdi_version"}),
    (UNKNOWN, "nvml_unknown_error",
     {"cpu_manager_static", "container_no_cgroups", "container_devices_denied"}),
])  # fmt: skip
def test_without_facts_each_cause_is_possible(text, first, others):
    (found,) = explain(text)

    assert (found.code, found.confidence, set(found.alternatives)) == (first, POSSIBLE, others)
    assert found.fix == ""


def test_a_container_that_has_just_started_is_not_changed_by_the_cpu_manager():
    facts = {**kubelet("static"), "container_toolkit": {"config": {}}}
    (found,) = explain(UNKNOWN, facts, seen={"just_started": True})

    assert found.code == "container_devices_denied"


@pytest.mark.parametrize("mode", ["enforcing", "permissive", None])
def test_what_the_audit_log_says_needs_no_fact(mode):
    text = (
        'avc:  denied  { read write } for  pid=1 comm="clinfo" name="renderD128" dev="devtmpfs" '
        "scontext=system_u:system_r:container_t:s0 tcontext=system_u:object_r:dri_device_t:s0 "
        "tclass=chr_file permissive=0"
    )
    (found,) = explain(f"{text}\n{DENIED}", selinux(mode))

    assert found.code == "selinux_denies_devices" and "renderD128" in found.cause
    # Denials of other files are no matter of GPUs.
    assert explain(text.replace("renderD128", "sda1")) == []


@pytest.mark.parametrize("mode", ["enforcing", "disabled", None])
def test_on_the_host_itself_it_is_the_driver(mode):
    """Root is not confined by the policy of containers, and may open each file."""
    (found,) = explain(DENIED, selinux(mode), seen={"on_host": True})

    assert (found.code, found.alternatives) == ("nvml_failed", ())
