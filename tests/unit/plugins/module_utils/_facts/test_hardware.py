# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.hardware import (
    read_bridges,
    read_functions,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.make_tree import write


@pytest.fixture
def reader(tmp_path: Path) -> NodeReader:
    return NodeReader(str(tmp_path))


def test_function_without_readable_ids_is_left_out(tmp_path: Path, reader: NodeReader) -> None:
    write(tmp_path, "/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    assert read_functions(reader) == []


B200 = [{"vendor": "nvidia", "device_id": "2901"}]


def bridge(folder: Path, address: str, pci_class: str = "0x020700", vpd: str = "") -> None:
    for name, text in {"vendor": "0x15b3", "class": pci_class, "vpd": vpd}.items():
        write(folder, f"/sys/bus/pci/devices/{address}/{name}", f"{text}\n" if text else "")


def test_bridges_to_nvswitches(tmp_path: Path, reader: NodeReader) -> None:
    """Told from other InfiniBand functions by their vital product data."""
    bridge(tmp_path, "0000:05:00.0", vpd="MLNX..V2.SMDL=SW_MNG.")
    bridge(tmp_path, "0000:05:00.1", vpd="MLNX..V2.SMDL=SW_MNG.")
    bridge(tmp_path, "0000:18:00.0", vpd="MLNX..ConnectX-7")
    bridge(tmp_path, "0000:19:00.0", "0x020000", "SW_MNG, but no InfiniBand")
    assert read_bridges(reader, B200) == 2
    assert read_bridges(reader, [{"vendor": "nvidia", "device_id": "2330"}]) == 0
    assert read_bridges(reader, []) == 0


def test_bridges_that_may_not_be_looked_at(tmp_path: Path, reader: NodeReader) -> None:
    bridge(tmp_path, "0000:05:00.0", vpd="SW_MNG")
    (tmp_path / "sys/bus/pci/devices/0000:05:00.0/vpd").unlink()
    assert read_bridges(reader, B200) is None
