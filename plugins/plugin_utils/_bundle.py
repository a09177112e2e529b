# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make a support bundle: an archive of what a diagnosis has read, the same for the same input.

The root user of a node controls what its modules return: names and sizes are checked here again,
and no control character remains. Texts are not redacted again. gpu_node_texts has redacted them, by
all that is known here (``without_secrets``), and a node whose root user returns other texts can
give away its own secrets only, which that user has.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import redact_data
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact_lines import redact_yaml

from ._hosts import facts

Object = Mapping[str, Any]

MANIFEST = "MANIFEST.json"
_FOLDER = "kubegpu-diagnosis"
#: Of one node.
_MOST_TEXTS = 400
_MOST_BYTES = 16 << 20
_MOST_NAME = 160
#: Of all nodes together.
_MOST_FLEET = 256 << 20
#: Where the texts of a node are; other names are those of what the modules return.
_TEXT_FOLDERS = frozenset({"config", "logs"})
_LEFT_OUT = "left out: the texts of a node may have {} MiB, in {} files"
_FLEET_FULL = f"left out: the bundle may have {_MOST_FLEET >> 20} MiB of texts"
_NO_TEXT = "left out: what the node returned is not text with a name"
_UNSEEN = "unseen.json"
_MOST_WHY = 1000
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
    progress: Callable[[str], None] = lambda _text: None,
) -> list[File]:
    """Return the files of the bundle, in their order.

    :param result: ``gpu_diagnose_result``.
    :param rows: ``gpu_verify_result.rows``.
    :param cluster: the result of ``gpu_cluster_info``; empty if the cluster was not asked.
    :param progress: is told how far the work is, after each host.
    """
    layers = {str(row["node"]): row["layers"] for row in rows}
    found = [File("diagnosis.json", _json(result), "the root causes of all hosts")]
    if cluster:
        found.append(File("cluster.json", _json(_of_cluster(cluster)), "gpu_cluster_info"))
    folders = _folders(hosts)
    left = _MOST_FLEET
    for number, host in enumerate(sorted(hosts), 1):
        variables = hostvars.get(host) or {}
        files = list(_of_host(folders[host], variables, layers.get(host, ()), left))
        left = max(0, left - sum(len(one.content) for one in files))
        found += files
        progress(f"the support bundle has {number} of {len(hosts)} hosts")
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


def _of_host(folder: str, variables: Object, layers: Sequence[Object], most: int) -> Iterator[File]:
    """Yield the files of a host, its texts with so many bytes at most."""
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
    unseen, given = _returned(read.get("texts"))
    left = min(_MOST_BYTES, most)
    used: set[str] = set()
    for number, text in enumerate(given):
        source = printable(str(text.get("source", "")))[:_MOST_NAME]
        name = _name(text)
        if name is None or not isinstance(text.get("text"), str):
            unseen.append({"what": source, "why": _NO_TEXT})
            continue
        if number >= _MOST_TEXTS or name in used or len(text["text"]) > left:
            why = (
                _FLEET_FULL
                if most < _MOST_BYTES
                else _LEFT_OUT.format(_MOST_BYTES >> 20, _MOST_TEXTS)
            )
            unseen.append({"what": source, "why": why})
            continue
        content = printable(text["text"]).encode("utf-8", "replace")
        used.add(name)
        left -= len(content)
        more = ", a part of it" if text.get("cut") else ""
        yield File(f"{folder}/{name}", content, f"{source}{more}")
    if unseen:
        yield File(f"{folder}/{_UNSEEN}", _json(unseen), "what could not be read, and why")


def _returned(texts: Any) -> tuple[list[Any], list[Object]]:
    """Return what a node did not read, and its texts; what has another form is not read, too."""
    if not isinstance(texts, Mapping):
        return ([{"what": "texts", "why": _NO_TEXT}] if texts else []), []
    if texts and "texts" not in texts:
        # The module failed.
        why = printable(str(texts.get("msg", "the module failed")))[:_MOST_WHY]
        return [{"what": "configurations and logs", "why": why}], []
    unseen, given = texts.get("unseen") or [], texts.get("texts") or []
    found = [one for one in unseen if isinstance(one, Mapping)] if _is_list(unseen) else []
    if not _is_list(given):
        return [*found, {"what": "texts", "why": _NO_TEXT}], []
    kept = [one for one in given if isinstance(one, Mapping)]
    if len(kept) < len(given):
        found.append({"what": f"{len(given) - len(kept)} texts", "why": _NO_TEXT})
    return found, kept


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _name(text: Object) -> str | None:
    """Return the path of a text in the folder of its node; None if it may have none."""
    given = text.get("name")
    if not isinstance(given, str) or len(given) > _MOST_NAME:
        return None
    parts = [_part(part) for part in given.split("/") if part]
    return "/".join(parts) if len(parts) > 1 and parts[0] in _TEXT_FOLDERS else None


def _of_cluster(value: Any) -> Any:
    """Return the answer of the cluster with the lines of its logs redacted as texts of a node."""
    if isinstance(value, Mapping):
        return {
            key: redact_yaml(one) if key == "log" and isinstance(one, str) else _of_cluster(one)
            for key, one in value.items()
        }
    return [_of_cluster(one) for one in value] if _is_list(value) else value


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


def by_host(files: Sequence[File], hosts: Sequence[str]) -> list[dict[str, Any]]:
    """Return how many files and bytes are in the bundle of each host, and how much is not there."""
    rows = []
    for host, folder in _folders(hosts).items():
        own = [one for one in files if one.name.startswith(f"{folder}/")]
        unseen = [json.loads(one.content) for one in own if one.name == f"{folder}/{_UNSEEN}"]
        size = sum(len(one.content) for one in own)
        rows.append({"host": host, "files": len(own), "size": size,
                     "unseen": sum(map(len, unseen))})  # fmt: skip
    return rows


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
