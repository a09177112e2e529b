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

Facts = Mapping[str, Any]
Answer = Optional[bool]
_NOT = "not "
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


PREDICATES: Mapping[str, Callable[[Facts], Answer]] = {
    "driver_agrees": _driver_agrees,
    "module_of_disk_loaded": _module_of_disk_loaded,
    "has_nvswitch": _has_nvswitch,
    "vgpu_unlicensed": _unlicensed,
    "no_cgroups": _no_cgroups,
    "has_nvidia": _has_nvidia,
    "has_amd": _has_amd,
    "other_vendor_only": _other_vendor_only,
    "nvidia_loaded": _nvidia_loaded,
    "nvidia_known_loaded": _known_loaded,
    "desktop_kernel": _desktop_kernel,
    "cdi_spec": _cdi_spec,
    "rootless": _rootless,
    "just_started": _just_started,
}
