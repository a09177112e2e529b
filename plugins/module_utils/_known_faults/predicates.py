# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the facts of a node say about the rules of known messages. Pure.

A predicate returns None where the facts do not tell. Facts may be partial: the fact
``gpu_node`` of a node, a part of it that a caller has, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

from .._hardware.vgpu_licence import LICENSED, UNLICENSED, licence_state
from .._nvidia.cdi_versions import READERS, is_newer, newest_read
from .._nvidia.toolkit_paths import OPERATOR_CONFIG

Facts = Mapping[str, Any]
Answer = Optional[bool]
_NOT = "not "
_NVIDIA_CDI = "nvidia.com/"
_CGROUPS = "nvidia-container-cli.no-cgroups"
_OF_DRIVER = ("loaded", "installed", "userland")


def holds(names: Sequence[str], facts: Facts, seen: Mapping[str, bool]) -> Answer:
    """Return whether all predicates hold; None if one is not known and none is false.

    :param seen: what the caller knows of the text itself, by the name of a predicate, such as
        ``just_started`` for a container that has only just been started.
    """
    answers = [_answer(name, facts, seen) for name in names]
    if False in answers:
        return False
    return None if None in answers else True


def _answer(name: str, facts: Facts, seen: Mapping[str, bool]) -> Answer:
    if name.startswith(_NOT):
        answer = _answer(name[len(_NOT) :], facts, seen)
        return None if answer is None else not answer
    return seen[name] if name in seen else PREDICATES[name](facts)


def partial(driver: str | None, gpus: Sequence[Mapping[str, Any]] = ()) -> Facts:
    """Return facts of which only the driver that is loaded and the GPUs are known."""
    return {"driver": {"loaded": driver or None}, "gpus": gpus}


def deciding(facts: Facts) -> dict[str, Any]:
    """Return what predicates ask of the facts of a node, without its GPUs; no more is passed on."""
    driver, toolkit = _part(facts, "driver"), _part(facts, "container_toolkit")
    config = toolkit.get("config")
    parts: dict[str, Any] = {
        "driver": {name: driver[name] for name in _OF_DRIVER if name in driver},
        "os": {"kernel": _part(facts, "os").get("kernel")},
        **{name: facts[name] for name in ("nvswitches", "nvswitch_bridges") if name in facts},
    }
    if toolkit:
        parts["container_toolkit"] = {
            "config": None if config is None else {_CGROUPS: config.get(_CGROUPS, False)},
            **({"cdi_spec": toolkit["cdi_spec"]} if "cdi_spec" in toolkit else {}),
        }
    return parts


def nvidia_gpus(facts: Facts) -> list[Mapping[str, Any]]:
    return [gpu for gpu in facts.get("gpus") or () if gpu.get("vendor") == "nvidia"]


def _part(facts: Facts, name: str) -> Mapping[str, Any]:
    return facts.get(name) or {}


def _driver_agrees(facts: Facts) -> Answer:
    """Whether the module that is loaded and the libraries of the node have the same version."""
    driver = _part(facts, "driver")
    loaded, userland = driver.get("loaded"), driver.get("userland")
    if not loaded or not userland:
        return None
    return bool(loaded == userland)


def _module_of_disk_loaded(facts: Facts) -> Answer:
    """Whether the module on the disk is the loaded one, so that a reboot changes nothing."""
    driver = _part(facts, "driver")
    loaded, installed = driver.get("loaded"), driver.get("installed")
    if not loaded or not installed:
        return None
    return bool(loaded == installed)


def _has_nvswitch(facts: Facts) -> Answer:
    """Whether the node has NVSwitches, or the bridges by which those of NVLink 5 are reached."""
    counts = [facts.get(name) for name in ("nvswitches", "nvswitch_bridges")]
    if any(counts):
        return True
    return None if None in counts else False


def _unlicensed(facts: Facts) -> Answer:
    """Whether a virtual GPU of the node has no licence."""
    gpus = nvidia_gpus(facts)
    if any(_licence(gpu) == UNLICENSED for gpu in gpus):
        return True
    whole = [_part(gpu, "vgpu").get("guest") is False or _licence(gpu) == LICENSED for gpu in gpus]
    return False if whole and all(whole) else None


def _licence(gpu: Mapping[str, Any]) -> str | None:
    return licence_state(gpu) if gpu.get("vgpu") else None


def _no_cgroups(facts: Facts) -> Answer:
    """Whether the toolkit leaves out the device rules of control groups, by its config.toml."""
    config = _part(facts, "container_toolkit").get("config")
    if config is None:
        return None
    return bool(config.get(_CGROUPS, False))


def _root_elsewhere(facts: Facts, of_operator: bool) -> Answer:
    """Whether a toolkit searches the driver in another folder than the node, which has it."""
    roots = _part(facts, "container_toolkit").get("driver_roots")
    driver = _part(facts, "driver")
    if roots is None or "userland" not in driver:
        return None
    own = bool(driver["userland"]) and not driver.get("container")
    asked = [root for path, root in roots.items() if (path == OPERATOR_CONFIG) == of_operator]
    return own and any(root.rstrip("/") for root in asked)


def _toolkit_root_elsewhere(facts: Facts) -> Answer:
    return _root_elsewhere(facts, of_operator=False)


def _operator_root_elsewhere(facts: Facts) -> Answer:
    return _root_elsewhere(facts, of_operator=True)


def _selinux_enforcing(facts: Facts) -> Answer:
    mode = _part(facts, "selinux").get("mode")
    return None if mode is None else bool(mode == "enforcing")


def _static_cpu_manager(facts: Facts) -> Answer:
    """Whether the CPU manager of the node's kubelet changes the control groups of containers."""
    if "kubelet" in facts and not facts["kubelet"]:
        return False
    policy = _part(facts, "kubelet").get("cpu_manager_policy")
    return None if policy is None else bool(policy == "static")


def _engines(facts: Facts) -> Mapping[str, str | None]:
    """Return the releases of the engines of the node."""
    runtimes = _part(facts, "runtimes")
    found = {name: engine.get("version") for name, engine in runtimes.items() if engine}
    return {**found, **({"podman": facts["podman"]} if facts.get("podman") else {})}


def _cdi_newer(facts: Facts, engines: Mapping[str, str | None]) -> Answer:
    """Whether the engines cannot read NVIDIA's specification; None if they differ."""
    if facts.get("cdi_specifications") is None:
        return False if _cdi_spec(facts) is False else None
    versions = [
        str(one["version"])
        for one in facts["cdi_specifications"]
        if one.get("version") and str(one.get("kind")).startswith(_NVIDIA_CDI)
    ]
    if not versions:
        return False
    read = [newest_read(name, release) for name, release in engines.items() if name in READERS]
    if not read or None in read:
        return None
    newer = {any(is_newer(version, str(one)) for version in versions) for one in read}
    return newer.pop() if len(newer) == 1 else None


def _cdi_newer_than_engine(facts: Facts) -> Answer:
    return _cdi_newer(facts, _engines(facts))


def _cdi_newer_than_docker(facts: Facts) -> Answer:
    return _cdi_newer(facts, {"docker": _engines(facts).get("docker")})


def _cdi_newer_than_podman(facts: Facts) -> Answer:
    return _cdi_newer(facts, {"podman": _engines(facts).get("podman")})


def _gpus_of(facts: Facts, vendor: str) -> Answer:
    """Whether the node has a GPU of a vendor; without any GPU in the facts it is not known."""
    gpus = facts.get("gpus") or ()
    return any(gpu.get("vendor") == vendor for gpu in gpus) if gpus else None


def _has_nvidia(facts: Facts) -> Answer:
    return _gpus_of(facts, "nvidia")


def _has_amd(facts: Facts) -> Answer:
    return _gpus_of(facts, "amd")


def _other_vendor_only(facts: Facts) -> Answer:
    nvidia = _has_nvidia(facts)
    return None if nvidia is None else not nvidia


def _nvidia_loaded(facts: Facts) -> Answer:
    """Whether NVIDIA's module is loaded; partial facts without a version do not tell."""
    driver = _part(facts, "driver")
    if driver.get("loaded"):
        return True
    return False if "installed" in driver else None


def _known_loaded(facts: Facts) -> Answer:
    """Whether the facts say that NVIDIA's module is loaded; never None.

    For a rule that corrects what a message says by itself, and needs facts for that.
    """
    return _nvidia_loaded(facts) is True


def _desktop_kernel(facts: Facts) -> Answer:
    """Whether the kernel is that of WSL 2 or of Docker Desktop's virtual machine."""
    kernel = str(_part(facts, "os").get("kernel") or "").lower()
    return any(word in kernel for word in ("microsoft", "linuxkit")) if kernel else None


def _cdi_spec(facts: Facts) -> Answer:
    """Whether the node has a CDI specification of NVIDIA."""
    toolkit = _part(facts, "container_toolkit")
    return toolkit["cdi_spec"] is not None if "cdi_spec" in toolkit else None


def _rootless(facts: Facts) -> Answer:
    """Only the caller knows whether an engine of a user without root said it."""
    return None


def _just_started(facts: Facts) -> Answer:
    """Only the caller knows it of a container."""
    return None


def _on_host(facts: Facts) -> Answer:
    """Only the caller knows it; without that, a text is taken as that of a container."""
    return False


PREDICATES: Mapping[str, Callable[[Facts], Answer]] = {
    "driver_agrees": _driver_agrees,
    "module_of_disk_loaded": _module_of_disk_loaded,
    "has_nvswitch": _has_nvswitch,
    "vgpu_unlicensed": _unlicensed,
    "no_cgroups": _no_cgroups,
    "toolkit_root_elsewhere": _toolkit_root_elsewhere,
    "operator_root_elsewhere": _operator_root_elsewhere,
    "selinux_enforcing": _selinux_enforcing,
    "static_cpu_manager": _static_cpu_manager,
    "cdi_newer_than_engine": _cdi_newer_than_engine,
    "cdi_newer_than_docker": _cdi_newer_than_docker,
    "cdi_newer_than_podman": _cdi_newer_than_podman,
    "has_nvidia": _has_nvidia,
    "has_amd": _has_amd,
    "other_vendor_only": _other_vendor_only,
    "nvidia_loaded": _nvidia_loaded,
    "nvidia_known_loaded": _known_loaded,
    "desktop_kernel": _desktop_kernel,
    "cdi_spec": _cdi_spec,
    "rootless": _rootless,
    "just_started": _just_started,
    "on_host": _on_host,
}
