# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An imported file that voids the CRI table of others, judged by the real containerd.

NVIDIA/nvidia-container-toolkit#1404 and its siblings: a drop-in file with the handler alone.
"""

from __future__ import annotations

import pytest

from tests.integration.engines.containerd_inputs.catalogue import fill
from tests.integration.engines.containerd_inputs.judge import (
    Place,
    cri,
    default,
    given,
    runtimes,
)

ROOT = """\
@VERSION@imports = ["@IMPORTS@/*.toml"]

[@CRI@]
  sandbox_image = "registry.example/pause:3.9"
  [@CRI@.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [@CRI@.containerd.runtimes.runc.options]
      BinaryName = "/usr/sbin/runc"
      SystemdCgroup = true
"""
HANDLER = """\
@VERSION@
[@CRI@.containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
  privileged_without_host_devices = false
  [@CRI@.containerd.runtimes.nvidia.options]
    BinaryName = "/usr/bin/nvidia-container-runtime"
"""
RUNC_OF_ITS_OWN = """\
[@CRI@.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [@CRI@.containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
CRUN = """\
[@CRI@.containerd]
  default_runtime_name = "crun"
  [@CRI@.containerd.runtimes.crun]
    runtime_type = "io.containerd.runc.v2"
"""
SYSTEMD = {"systemdcgroup": True}

on_old = pytest.mark.parametrize("containerd", ["1.6", "1.7"])
on_new = pytest.mark.parametrize("containerd", ["2.1"])


@pytest.fixture
def made(containerd, tmp_path):
    """Return how a configuration of version 2 is written, with files that it imports."""
    place = Place(tmp_path, containerd)
    place.imports.mkdir(parents=True)

    def write(root, **imported):
        place.config.write_text(fill(root, 2, str(place.imports)))
        for name, text in imported.items():
            (place.imports / f"{name}.toml").write_text(fill(text, 2, str(place.imports)))
        return place

    return write


def voids(answer):
    return [text for text in answer["reasons"] if "voids CRI settings" in text]


@on_old
def test_runc_comes_from_the_voided_file_and_what_is_lost_is_named(made, containerd):
    place = made(ROOT, nvidia=HANDLER)
    # Measured: neither runc nor the image of config.toml is in effect.
    assert set(runtimes(place.dump())) == {"nvidia"}
    assert cri(place.dump())["sandbox_image"] != "registry.example/pause:3.9"
    before = place.config.read_bytes()
    answer = place.ok()
    (warning,) = voids(answer)
    assert f"{place.imports}/nvidia.toml voids CRI settings of other files" in warning
    assert f"{place.config}: sandbox_image, containerd.runtimes.runc." in warning
    assert f"Move the CRI table of {place.imports}/nvidia.toml to {place.config}" in warning
    after = runtimes(place.dump())
    assert given(after["runc"]["options"]) == {"binaryname": "/usr/sbin/runc", **SYSTEMD}
    assert given(after["nvidia"]["options"]) == {
        "binaryname": "/usr/bin/nvidia-container-runtime",
        **SYSTEMD,
    }
    assert default(place.dump()) == "runc"
    assert place.config.read_bytes() == before
    again = place.run()
    assert not again["changed"] and "sandbox_image" in voids(again)[0]
    (place.imports / "nvidia.toml").rename(place.imports / "nvidia.moved")
    assert cri(place.dump())["sandbox_image"] == "registry.example/pause:3.9"


@on_old
def test_a_file_that_others_complete_is_only_warned_about(made, containerd):
    """As nvidia-ctk leaves it after a later edit of config.toml."""
    registry = '[@CRI@.registry]\n  config_path = "/etc/containerd/certs.d"\n'
    place = made(ROOT + registry, nvidia=HANDLER + RUNC_OF_ITS_OWN)
    before = runtimes(place.dump())["runc"]
    (warning,) = voids(place.ok())
    assert "sandbox_image, containerd.runtimes.runc.options.BinaryName, registry." in warning
    assert runtimes(place.dump())["runc"] == before


@on_old
def test_each_voided_file_is_named(made, containerd):
    cni = '@VERSION@[@CRI@.cni]\n  conf_dir = "/etc/cni/other.d"\n'
    place = made(ROOT, a=cni, b=HANDLER)
    (warning,) = voids(place.ok())
    assert f"{place.config}: sandbox_image, containerd.runtimes.runc" in warning
    assert f"{place.imports}/a.toml: cni.conf_dir" in warning or "a.toml: cni" in warning


@on_old
@pytest.mark.parametrize("last", ["nothing of CRI", "all of it"])
def test_nothing_is_lost_where_nothing_differs(made, containerd, last):
    files = {
        "nothing of CRI": '@VERSION@[debug]\n  level = "info"\n',
        "all of it": ROOT.replace('imports = ["@IMPORTS@/*.toml"]', ""),
    }
    place = made(ROOT, last=files[last])
    assert voids(place.ok()) == []
    assert given(runtimes(place.dump())["nvidia"]["options"])["systemdcgroup"] is True


@on_old
def test_a_default_runtime_that_is_lost_is_a_refusal(made, containerd):
    place = made(ROOT + CRUN, nvidia=HANDLER)
    before = place.snapshot()
    answer = place.module()
    assert answer["failed"]
    assert "nvidia.toml voids CRI settings of other files" in answer["cause"]
    assert "The default runtime crun" in answer["cause"]
    assert "containerd.default_runtime_name" in answer["evidence"]
    assert f"to {place.config}" in answer["next_step"]
    assert place.snapshot() == before


@on_new
def test_newer_releases_merge_the_tables(made, containerd):
    place = made(ROOT + CRUN, nvidia=HANDLER)
    assert set(runtimes(place.dump())) == {"runc", "crun", "nvidia"}
    assert voids(place.ok()) == []
    assert default(place.dump()) == "crun"
