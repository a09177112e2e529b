# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify a node: read its facts, collect its state, judge the layers."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from .._core.errors import KubegpuError
from .._core.finding import Finding
from .._core.message import message
from .._docker.api import find_program, read_info
from .._docker.pending import pending
from .._docker.types import Dependencies as DockerNode
from .._facts.gather import gather
from .._facts.runtimes import RuntimePaths
from .._hardware.vgpu_licence import unlicensed
from .._host.bounded import Stream, read_hang
from .._host.command import Runner
from .._host.download import read_text
from .._host.files import changed_since
from .._host.reader import NodeReader
from .._host.signals import end_children, ignore_signals
from .._host.systemd import read_daemon
from .._record.options import STATE_PATH
from .._record.store import StateStore
from .collect import Collector, await_licences, cleaned
from .containers import Dependencies
from .evidence import own_gpus
from .judge import any_failed, judge_node
from .metrics import judge_metrics, read_page
from .options import check_options, read_probe_options, read_request
from .rootfs import TemporaryRoot, exclusive, image_names, interpreter, is_file
from .types import NVML

# Bytes and seconds for the page of an exporter on this node.
_MAX_PAGE = 32 << 20
_PAGE_SECONDS = 30


def node_dependencies(run: Runner, stream: Stream | None = None) -> Dependencies:
    """Return access to the node that this process runs on."""
    reader = NodeReader("/", run, stream)
    return Dependencies(
        run,
        reader,
        TemporaryRoot(),
        uuid.uuid4().hex[:8],
        image_names,
        interpreter,
        _restarted_since(run, reader),
        _docker_pending(run),
        exclusive,
        _before_cleanup,
    )


def verify_node(
    params: Mapping[str, Any], dependencies: Dependencies, check_mode: bool
) -> dict[str, Any]:
    """Return the result of the module.

    :raises KubegpuError: an option has a wrong value, or a test container could not be prepared.
    """
    check_options(params, is_file)
    paths = RuntimePaths(params["containerd_config_path"], params["docker_config_path"])
    read = partial(
        gather,
        dependencies.reader,
        paths,
        fresh=True,
        driver_seconds=params["driver_timeout"],
    )
    node = read(hang=read_hang(params["driver_hang"]))
    options = read_probe_options(params)
    if NVML in params["layers"] and unlicensed(node["gpus"]):
        hang = await_licences(dependencies.reader, node, options)
        node = read(hang=hang)
    if node.get("driver_hang"):
        # A container would hang, too.
        options = replace(options, container=False)
    collector = Collector(dependencies, options, check_mode)
    state = None
    if own_gpus(node):
        with cleaned(collector):
            state = collector.collect(node)
        if state.hang is not None:
            node = {**node, "driver_hang": asdict(state.hang)}
    results = judge_node(node, state, read_request(params))
    if params["metrics"]:
        page = read_page(node["exporter"], dependencies.reader, _fetch, time.time())
        results.append(judge_metrics(node, page))
    name = node["os"]["hostname"] or ""
    return {
        "changed": False,
        "ok": not any_failed(results),
        "failed_layers": list(dict.fromkeys(one.layer for one in results if one.ok is False)),
        "layers": [one.entry(name) for one in results],
        "ansible_facts": {"gpu_node": node},
    }


def _fetch(url: str) -> str:
    return read_text(url, _MAX_PAGE, _PAGE_SECONDS, proxy=False)


def failure_text(layers: list[dict[str, Any]]) -> str:
    """Return cause, evidence and next step of each layer that failed."""
    return "\n".join(
        message(one, head=f"{one['layer']}: {one['cause']}") for one in layers if one["ok"] is False
    )


def first_failure(layers: list[dict[str, Any]]) -> KubegpuError:
    """Return the error of the first layer that failed."""
    first = next(one for one in layers if one["ok"] is False)
    return KubegpuError(
        first["cause"],
        evidence=first["evidence"],
        next_step=first["next_step"],
        code=first["code"],
        names=first.get("names"),
    )


def _before_cleanup() -> None:
    ignore_signals()
    # A signal leaves the command running that it interrupted.
    end_children()


def _restarted_since(run: Runner, reader: NodeReader) -> Callable[[str, str], bool | None]:
    def restarted(unit: str, path: str) -> bool | None:
        started = read_daemon(run, unit).started
        if started is None or not reader.exists(path):
            return None
        return not changed_since(path, started)

    return restarted


def _docker_pending(run: Runner) -> Callable[[Mapping[str, Any], str], Finding | None]:
    def waits(facts: Mapping[str, Any], handler: str) -> Finding | None:
        # A record that cannot be read is an error of those that write it.
        with contextlib.suppress(KubegpuError):
            # No file is validated, so that it needs no folder for that.
            node = DockerNode(run, StateStore(STATE_PATH), "", read_info, find_program)
            return pending(facts, handler, node)
        return None

    return waits
