# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.versions import version_numbers
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.cdi_versions import (
    READERS,
    first_reader,
    is_newer,
    newest_read,
)

# NVIDIA's release notes of the container toolkit 1.19.1 (NVIDIA/cloud-native-docs).
NOTES = {"containerd": "1.7.16", "docker": "26.1.0", "podman": "5.1.0", "crio": "1.30.0"}


@pytest.mark.parametrize("engine", READERS)
def test_the_table_has_the_releases_of_nvidias_notes(engine):
    assert first_reader(engine, "0.7.0") == NOTES[engine]


@pytest.mark.parametrize("engine", READERS)
def test_newer_releases_read_newer_specifications(engine):
    releases = [version_numbers(release) for release, _read in READERS[engine]]
    read = [version_numbers(version) for _release, version in READERS[engine]]

    assert releases == sorted(releases) and read == sorted(read)


@pytest.mark.parametrize(("engine", "release", "read"), [
    ("podman", "4.9.3", "0.6.0"), ("podman", "4.0.2", None), ("podman", "5.8.2", "1.0.0"),
    ("containerd", "1.6.20", None), ("containerd", "1.7.30", "0.8.0"),
    ("containerd", "2.0.5-k3s1", "1.0.0"), ("containerd", "2.2.0", "1.0.0"),
    ("docker", "20.10.24", None), ("docker", "26.0.2", "0.6.0"), ("docker", "29.7.2", "1.1.0"),
    ("crio", "1.29.5", "0.6.0"), ("crio", None, None), ("docker", "", None),
])  # fmt: skip
def test_what_a_release_reads(engine, release, read):
    assert newest_read(engine, release) == read


def test_versions_are_compared_as_numbers():
    assert is_newer("0.10.0", "0.9.0") and not is_newer("0.7.0", "0.7.0")
    assert first_reader("podman", "9.0.0") is None
