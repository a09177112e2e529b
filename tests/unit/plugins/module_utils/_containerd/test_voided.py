# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CRI settings that a later file replaces in containerd 1.x."""

from __future__ import annotations

import tomllib

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import State
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.voided import (
    find_voided,
    refuse_lost_default,
    voided_runc,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.config_file import ConfigFile

CRI = 'plugins."io.containerd.grpc.v1.cri"'
RUNC = f'[{CRI}.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
NVIDIA = f'[{CRI}.containerd.runtimes.nvidia]\nruntime_type = "io.containerd.runc.v2"\n'
DEFAULT = f'[{CRI}.containerd]\ndefault_runtime_name = "{{0}}"\n'


def state(*texts, version=(1, 7), merged=False):
    files = tuple(
        ConfigFile(f"/{index}", text, tomllib.loads(f"version = 2\n{text}"))
        for index, text in enumerate(texts)
    )
    return State(version, files, ConfigFile("/drop-in", None, {}), merged=merged)


@pytest.mark.parametrize(
    ("texts", "lost"),
    [
        ((f'[{CRI}]\nsandbox_image = "x"\n', NVIDIA), {"/0": ("sandbox_image",)}),
        ((RUNC, NVIDIA), {"/0": ("containerd.runtimes.runc",)}),
        ((RUNC + f"[{CRI}.cni]\na = 1\nb = 2\n", f"[{CRI}.cni]\na = 1\nb = 3\n"),
         {"/0": ("containerd.runtimes.runc", "cni.b")}),
        # Each file before the last one.
        ((f"[{CRI}]\na = 1\n", f"[{CRI}]\nb = 1\n", f"[{CRI}]\nc = 1\n"),
         {"/0": ("a",), "/1": ("b",)}),
        # What says nothing, what is the same, and files without CRI are not lost.
        ((f"[{CRI}]\na = false\nb = ''\n[{CRI}.registry]\n", NVIDIA), None),
        ((RUNC, RUNC + NVIDIA), None),
        ((RUNC, "[debug]\nlevel = 'info'\n"), None),
        ((RUNC,), None),
        ((), None),
    ],
)  # fmt: skip
def test_settings_that_are_lost(texts, lost):
    found = find_voided(state(*texts or [""]))
    assert (found and dict(found.lost)) == lost


@pytest.mark.parametrize("merging", [{"version": (2, 1)}, {"merged": True}])
def test_where_tables_are_merged_nothing_is_lost(merging):
    assert find_voided(state(RUNC, NVIDIA, **merging)) is None
    assert voided_runc(state(RUNC, NVIDIA, **merging)) is None


def test_a_long_list_is_cut():
    keys = "".join(f"k{number} = 1\n" for number in range(12))
    found = find_voided(state(f"[{CRI}]\n{keys}", NVIDIA))
    assert found is not None
    assert found.settings == "/0: k0, k1, k2, k3, k4, k5, k6, k7 and 4 more"
    assert "Not in effect: /0: k0" in found.warning


@pytest.mark.parametrize(
    ("texts", "path"),
    [
        ((RUNC, NVIDIA), "/0"),
        # Where the type is left out it is the built-in one.
        ((f"[{CRI}.containerd.runtimes.runc.options]\nRoot = '/r'\n", RUNC, NVIDIA), "/1"),
        # The last file has its own, or needs none.
        ((RUNC, RUNC + NVIDIA), None),
        ((RUNC, f"[{CRI}]\na = 1\n"), None),
        ((RUNC, NVIDIA + DEFAULT.format("nvidia")), None),
        ((NVIDIA, NVIDIA), None),
    ],
)
def test_runc_of_a_voided_file(texts, path):
    found = voided_runc(state(*texts))
    assert (found and found[0]) == path
    assert found is None or found[1]["runtime_type"] == "io.containerd.runc.v2"


@pytest.mark.parametrize(
    ("texts", "refused"),
    [
        ((RUNC + DEFAULT.format("crun"), NVIDIA), "crun"),
        ((DEFAULT.format("crun"), DEFAULT.format("kata"), NVIDIA), "kata"),
        # The later one had replaced it.
        ((DEFAULT.format("crun"), DEFAULT.format("runc"), NVIDIA), ""),
        ((RUNC + DEFAULT.format("runc"), NVIDIA), ""),
        ((RUNC + DEFAULT.format("nvidia"), NVIDIA), ""),
        # Pods start: the file has a runc, or another default.
        ((DEFAULT.format("crun"), RUNC + NVIDIA), ""),
        ((DEFAULT.format("crun"), NVIDIA + DEFAULT.format("nvidia")), ""),
        ((DEFAULT.format("crun"), f"[{CRI}]\na = 1\n"), ""),
    ],
)
def test_a_lost_default_runtime(texts, refused):
    if not refused:
        refuse_lost_default(state(*texts), "nvidia")
        return
    with pytest.raises(KubegpuError, match=f"The default runtime {refused}"):
        refuse_lost_default(state(*texts), "nvidia")
