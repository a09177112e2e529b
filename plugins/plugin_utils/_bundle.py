# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make a support bundle: an archive of what a diagnosis has read, the same for the same input.

The root user of a node controls what its modules return: names, sizes and texts are checked here
again, and each text passes the redactor once more.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import (
    redact_data,
    redact_yaml,
)

from ._hosts import facts

Object = Mapping[str, Any]

MANIFEST = "MANIFEST.json"
_FOLDER = "kubegpu-diagnosis"
#: Of one node.
_MOST_TEXTS = 400
_MOST_BYTES = 16 << 20
_MOST_NAME = 160
_LEFT_OUT = "left out: the texts of a node may have {} MiB, in {} files"
_NOT_NAME = re.compile(r"[^\w.@+:=-]", re.ASCII)
#: Facts that name versions, by their path.
_VERSIONS = ("os", "kernels", "driver", "container_toolkit", "amd_container_toolkit", "amd_driver",
             "cuda", "runtimes", "kubelet", "python")  # fmt: skip


@dataclass(frozen=True)
class File:
    """A file of the bundle; ``source`` is where its content is from."""

    name: str
    content: bytes
    source: str

    def entry(self) -> dict[str, Any]:
        """Return its line in the list of what is in the bundle."""
        digest = hashlib.sha256(self.content).hexdigest()
        return {"name": self.name, "size": len(self.content), "sha256": digest,
                "source": self.source}  # fmt: skip


def bundle_files(
    hosts: Sequence[str],
    hostvars: Mapping[str, Object],
    result: Object,
    rows: Sequence[Object] = (),
    cluster: Object | None = None,
) -> list[File]:
    """Return the files of the bundle, in their order.

    :param result: ``gpu_diagnose_result``.
    :param rows: ``gpu_verify_result.rows``.
    :param cluster: the result of ``gpu_cluster_info``; empty if the cluster was not asked.
    """
    layers = {str(row["node"]): row["layers"] for row in rows}
    found = [File("diagnosis.json", _json(result), "the root causes of all hosts")]
    if cluster:
        found.append(File("cluster.json", _json(cluster), "gpu_cluster_info"))
    folders = _folders(hosts)
    for host in sorted(hosts):
        found += _of_host(folders[host], hostvars.get(host) or {}, layers.get(host, ()))
    return sorted(found, key=lambda one: one.name)


def _folders(hosts: Iterable[str]) -> dict[str, str]:
    """Return the folder of each host; two names never share one."""
    found: dict[str, str] = {}
    for host in sorted(hosts):
        plain = _part(host)
        if plain != host:
            plain += "-" + hashlib.sha256(host.encode("utf-8", "replace")).hexdigest()[:8]
        found[host] = f"hosts/{plain}"
    return found


def _part(name: str) -> str:
    """Return a name that is one part of a path, whatever it was."""
    plain = _NOT_NAME.sub("_", name)[:_MOST_NAME]
    return plain if plain.strip(".") else "_"


def _of_host(folder: str, variables: Object, layers: Sequence[Object]) -> Iterator[File]:
    node = facts(variables)
    read: Object = variables.get("gpu_diagnose_plan") or {}
    if node is not None:
        yield File(f"{folder}/facts.json", _json(node), "gpu_node_facts")
        versions = {name: node[name] for name in _VERSIONS if node.get(name)}
        yield File(f"{folder}/versions.json", _json(versions), "gpu_node_facts")
    if layers:
        yield File(f"{folder}/layers.json", _json(layers), "gpu_node_verify")
    if read.get("health"):
        yield File(f"{folder}/health.json", _json(read["health"]), "gpu_node_health")
    texts: Object = read.get("texts") or {}
    unseen = list(texts.get("unseen") or ())
    left = _MOST_BYTES
    used: set[str] = set()
    for number, text in enumerate(texts.get("texts") or ()):
        name = "/".join(_part(part) for part in str(text["name"]).split("/") if part)[:_MOST_NAME]
        source = printable(str(text["source"]))[:_MOST_NAME]
        given = str(text["text"])
        if len(given) > left or number >= _MOST_TEXTS or not name or name in used:
            why = _LEFT_OUT.format(_MOST_BYTES >> 20, _MOST_TEXTS)
            unseen.append({"what": source, "why": why})
            continue
        # The syntax of YAML covers most: it is that of lines, and what is indented below them.
        content = printable(redact_yaml(given)).encode("utf-8", "replace")
        used.add(name)
        left -= len(content)
        more = ", a part of it" if text.get("cut") else ""
        yield File(f"{folder}/{name}", content, f"{source}{more}")
    if unseen:
        yield File(f"{folder}/unseen.json", _json(unseen), "what could not be read, and why")


def _json(value: Any) -> bytes:
    # Data of Ansible's, with types of its own, becomes plain data first.
    plain = json.loads(json.dumps(value, default=str))
    text = json.dumps(redact_data(_printable(plain)), indent=2, sort_keys=True)
    return f"{text}\n".encode()


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable(one) for key, one in value.items()}
    return [_printable(one) for one in value] if isinstance(value, list) else value


def manifest(files: Sequence[File]) -> list[dict[str, Any]]:
    """Return the list of what is in the bundle, without the list itself."""
    return [one.entry() for one in files]


def archive(files: Sequence[File]) -> bytes:
    """Return the bundle: the same bytes for the same files."""
    listed = File(MANIFEST, _json({"files": manifest(files)}), "")
    whole = io.BytesIO()
    # Neither a time nor a name of the archive.
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=whole, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for one in (listed, *files):
            info = tarfile.TarInfo(f"{_FOLDER}/{one.name}")
            info.size, info.mtime, info.mode = len(one.content), 0, 0o600
            tar.addfile(info, io.BytesIO(one.content))
    return whole.getvalue()
