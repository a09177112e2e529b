# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the engines of a node read the CDI specification that the toolkit writes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._nvidia.cdi_versions import first_reader, is_newer, newest_read
from .settings import release_of

# Release notes of 1.19.1 (NVIDIA/cloud-native-docs, container-toolkit/release-notes.md).
_SINCE, _WRITTEN = (1, 19, 1), "0.7.0"
_NAMES = {"podman": "Podman", "crio": "CRI-O", "containerd": "containerd"}


def reader_notes(node: Mapping[str, Any], version: str) -> Iterator[str]:
    """Yield a warning for each engine that takes CDI devices itself and is too old for them.

    Docker takes GPUs from the nvidia runtime, which reads the specification itself.

    :param version: of the toolkit, as planned.
    """
    if release_of(version) < _SINCE:
        return
    for engine, release in _engines(node):
        read = newest_read(engine, release)
        if read is not None and is_newer(_WRITTEN, read):
            yield (
                f"{_NAMES[engine]} {release} reads CDI specifications up to {read}, and the "
                f"toolkit writes {_WRITTEN} since 1.19.1: the engine does not find its devices. "
                f"Next step: upgrade it to {first_reader(engine, _WRITTEN)} or newer, or set "
                "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=no-additional-gids-for-device-nodes in "
                "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env."
            )


def _engines(node: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    yield "podman", node.get("podman")
    runtimes = node["runtimes"]
    if runtimes["crio"]:
        yield "crio", runtimes["crio"]["version"]
    if runtimes["containerd"] and runtimes["containerd"]["cdi_enabled"]:
        yield "containerd", runtimes["containerd"]["version"]
