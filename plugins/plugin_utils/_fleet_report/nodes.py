# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node of the report, from what its host gave. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .judge import find_causes, layer_name, needs_root, remarks, state
from .texts import mapping, number, sequence, text, texts
from .types import (
    NOT_KNOWN,
    UNKNOWN,
    Decision,
    Gpu,
    Layer,
    Node,
    Object,
    Place,
    Resource,
    Source,
    Unseen,
)

_STATUS = {True: "ok", False: "failed", None: "not tried"}
_SECURE_BOOT: Mapping[Any, str] = {True: "on", False: "off"}
_ROOT = "only root can read it (become)"
#: Layers that are not tried for a reason that is seen elsewhere.
_OBVIOUS = frozenset({"waits", "needs_driver", "no_gpu", "not_asked"})
_RUNTIMES = {"containerd": "containerd", "docker": "Docker", "crio": "CRI-O"}
_FABRIC = "nvidia-fabricmanager"
_UNCORRECTED = re.compile("volatile_.*uncorrected")


def make_node(source: Source) -> Node:
    """Return the node of a host."""
    causes = find_causes(source)
    current = state(source, causes)
    facts = source.facts or {}
    gpus = _gpus(source)
    products = _counted(gpu.product for gpu in gpus)
    system = _system(facts)
    return Node(
        name=text(source.name),
        state=current,
        why=causes[0].cause if causes and causes[0].severity != "info" else "",
        machine_id=text(mapping(facts.get("os")).get("machine_id")),
        kind=" · ".join(filter(None, [" + ".join(sorted(products)), system])) if gpus else "",
        system=system,
        product=", ".join(f"{count}x {name}" for name, count in products.items()),
        versions=_versions(facts, len(gpus)) if gpus else {},
        gpus=tuple(gpus),
        place=_place(source.cluster),
        layers=tuple(_layer(one, source.root) for one in source.layers or ()),
        causes=tuple(causes),
        decisions=tuple(_decisions(source.plan)) if current != UNKNOWN else (),
        notes=remarks(source) if current != UNKNOWN else (),
        upgrade=_outcome(source.upgrade),
        acceptance=_outcome(source.acceptance),
        unseen=tuple(_unseen(source)),
    )


def _outcome(result: Object) -> str:
    return text(result.get("outcome")).replace("_", " ")


def _counted(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _system(facts: Object) -> str:
    system = mapping(facts.get("os"))
    return " ".join(texts((system.get("id"), system.get("version"))))


def _versions(facts: Object, gpus: int) -> dict[str, str]:
    """Return what nodes of one kind should have in common; empty values are left out."""
    driver, cuda = mapping(facts.get("driver")), mapping(facts.get("cuda"))
    runtimes = mapping(facts.get("runtimes"))
    toolkit = mapping(facts.get("container_toolkit")).get("version")
    amd = mapping(facts.get("amd_container_toolkit")).get("version")
    fabric = [
        version
        for name, version in mapping(driver.get("packages")).items()
        if text(name).startswith(_FABRIC)
    ]
    found = {
        "GPUs": str(gpus),
        "Driver": _driver(driver, mapping(facts.get("kernel_drivers"))),
        "Kernel module": text(driver.get("kernel_module")),
        "CUDA": ", ".join(texts(one.get("version") for one in sequence(cuda.get("toolkits")))),
        "Container toolkit": ", ".join(texts((toolkit, amd))),
        **{
            title: text(mapping(runtimes.get(name)).get("version"))
            for name, title in _RUNTIMES.items()
        },
        "Fabric manager": ", ".join(texts(fabric)),
        "Kernel": text(mapping(facts.get("os")).get("kernel")),
        "Secure Boot": _SECURE_BOOT.get(facts.get("secure_boot"), NOT_KNOWN),
    }
    return {name: value for name, value in found.items() if value}


def _driver(driver: Object, of_kernel: Object) -> str:
    loaded, installed = text(driver.get("loaded")), text(driver.get("installed"))
    others = [
        f"{text(name)} {text(mapping(one).get('version'))}" for name, one in of_kernel.items()
    ]
    if loaded:
        own = loaded if installed in ("", loaded) else f"{loaded} ({installed} installed)"
    else:
        own = f"{installed} (not loaded)" if installed else ""
    return ", ".join(texts((own, *others))) or "none"


def _gpus(source: Source) -> list[Gpu]:
    """Return the GPUs on the bus, and those that only the driver knows."""
    facts = source.facts or {}
    devices = _by_address(mapping(facts.get("nvml")).get("devices"))
    health = _by_address(mapping(source.health).get("gpus"))
    xids = _xids(sequence(mapping(source.health).get("events")))
    found = []
    for gpu in sequence(facts.get("gpus")):
        address = text(gpu.get("address"))
        product = text(gpu.get("product")) or " ".join(
            texts((gpu.get("vendor"), gpu.get("device_id")))
        )
        seen = {**health.get(address, {}), "xids": xids.get(address, "")}
        found.append(_gpu(address, product, devices.get(address, {}), seen))
    return found


def _by_address(values: Any) -> dict[str, Mapping[str, Any]]:
    return {text(one.get("address")): one for one in sequence(values)}


def _gpu(address: str, product: str, device: Object, seen: Object) -> Gpu:
    mode = text(device.get("mig_mode"))
    return Gpu(
        address=address,
        product=product,
        index=number(seen.get("index")),
        uuid=text(device.get("uuid") or seen.get("uuid")),
        serial=text(device.get("serial") or seen.get("serial")),
        memory=number(device.get("memory_total")),
        mig=_mig(mode, len(sequence(device.get("mig_devices")))),
        link=_link(mapping(seen.get("link"))),
        errors=_errors(seen),
        xids=text(seen.get("xids")),
    )


def _mig(mode: str, devices: int) -> str:
    if mode != "enabled":
        return ""
    return f"{devices} device{'' if devices == 1 else 's'}"


def _link(link: Object) -> str:
    width, most = number(link.get("width")), number(link.get("width_max"))
    if width is None:
        return ""
    return f"x{width}" if most in (None, width) else f"x{width} of x{most}"


def _errors(seen: Object) -> str:
    """Return the memory errors of a GPU: ``none``, or empty if nothing counts them."""
    rows, pages, ecc = (
        mapping(seen.get(name)) for name in ("remapped_rows", "retired_pages", "ecc")
    )
    since_reset = [value for name, value in ecc.items() if _UNCORRECTED.fullmatch(text(name))]
    counted = {
        "uncorrected": since_reset,
        "rows remapped": [rows.get(name) for name in ("corrected", "uncorrected")],
        "pages retired": [*pages.values()],
    }
    counts = {
        name: [count for count in map(number, values) if count is not None]
        for name, values in counted.items()
    }
    if not any(counts.values()):
        return ""
    shown = [f"{sum(values)} {name}" for name, values in counts.items() if sum(values)]
    if rows.get("pending") is True:
        shown.append("rows to be remapped")
    return ", ".join(shown) or "none"


def _xids(events: Iterable[Object]) -> dict[str, str]:
    """Return the Xids of the present boot by address, such as ``79, 31 (12 times)``."""
    found: dict[str, dict[int, int]] = {}
    for event in events:
        xid, count = number(event.get("number")), number(event.get("count"))
        if event.get("kind") == "xid" and event.get("boot") == 0 and xid is not None:
            counts = found.setdefault(text(event.get("address")), {})
            counts[xid] = counts.get(xid, 0) + (count or 1)
    return {
        address: ", ".join(
            str(xid) if count == 1 else f"{xid} ({count} times)"
            for xid, count in sorted(counts.items())
        )
        for address, counts in found.items()
    }


def _place(node: Object | None) -> Place | None:
    if not node:
        return None
    resources = mapping(node.get("resources"))
    return Place(
        node=text(node.get("name")),
        ready=bool(node.get("ready")),
        cordoned=bool(node.get("cordoned")),
        resources=tuple(
            Resource(
                text(name),
                *(number(one.get(key)) or 0 for key in ("capacity", "allocatable", "allocated")),
            )
            for name, one in sorted(resources.items())
        ),
    )


def _layer(layer: Object, root: bool) -> Layer:
    ok = layer.get("ok")
    if ok is False and needs_root(layer, root):
        return Layer(text(layer["layer"]), _STATUS[None], text(layer.get("subject")), _ROOT)
    shown = layer.get("proof") if ok else layer.get("cause")
    return Layer(
        text(layer["layer"]),
        _STATUS[ok if ok is None else bool(ok)],
        text(layer.get("subject")),
        text(shown),
        text(layer.get("evidence")),
        text(layer.get("next_step")),
    )


def _decisions(plan: Object) -> list[Decision]:
    """Return the changes with their reasons, then the reasons why nothing else changes."""
    changes = [text(one) for one in sequence(plan.get("changes"))]
    reasons = [text(one) for one in sequence(plan.get("why"))]
    changes += [""] * (len(reasons) - len(changes))
    return [Decision(change, why) for change, why in zip(changes, reasons)]


def _unseen(source: Source) -> list[Unseen]:
    found = [Unseen(text(one.get("what")), text(one.get("why"))) for one in source.unseen]
    if source.verdict:
        # The diagnosis shows all but the layers that were not tried.
        return list(dict.fromkeys((*found, *_untried(source))))
    if source.facts is None:
        why = text(source.failure.get("cause"))
        return [Unseen("the node", why or "it could not be read"), *found]
    if not source.facts["gpus"]:
        return found
    if source.layers is None:
        found.append(Unseen("layers", "nothing verified them in this run"))
    found += _untried(source)
    found += [
        Unseen(text(one.get("what")), text(one.get("why")))
        for one in sequence(mapping(source.health).get("unseen"))
    ]
    if mapping(source.facts.get("driver")).get("managed", False) is None:
        found.append(Unseen("record of this collection", "only root can read it"))
    return list(dict.fromkeys(found))


def _untried(source: Source) -> list[Unseen]:
    return [
        Unseen(layer_name(one), text(one.get("cause")))
        for one in source.layers or ()
        if one.get("ok") is None and one.get("cause") and one.get("code") not in _OBVIOUS
    ]
