# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._health.facts import (
    read_logs,
    read_node,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.types import (
    Narrow,
    Request,
    Smi,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import Ended, Hang
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.hanging import hanging_smi
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.health_node import (
    A100,
    BOOT_ID,
    StandinStream,
    journal,
    make_node,
    smi_document,
    smi_gpu,
    xid,
)
from tests.unit.fixtures.machines import ASPEED, Function, nvidia
from tests.unit.fixtures.make_tree import write

BRIDGE = Function("0000:00:01.0", "8086", "352a", "060400")
SWITCH = Function("0000:01:00.0", "1000", "c010", "060400")
CARD = nvidia("0000:02:00.0", "20b5", driver="nvidia")
MI210 = Function("0000:03:00.0", "1002", "740f", "038000", "1002", driver="amdgpu")


def node_of(root, answers=None, **options):
    stream = StandinStream(answers or {})
    return read_node(NodeReader(str(root)), stream, Request(**options)), stream


def pci(root, address, **files):
    for name, text in files.items():
        write(root, f"/sys/bus/pci/devices/{address}/{name}", f"{text}\n")


def test_a_node_with_nvidia(tmp_path):
    root = make_node(tmp_path)
    answers = {
        "nvidia-smi": smi_document(smi_gpu()),
        "journalctl 0": journal((5, xid(79))),
        "journalctl -1": journal((-500, xid(31))),
    }
    node, stream = node_of(root, answers)
    assert stream.asked == ["nvidia-smi", "journalctl 0", "journalctl -1", "journalctl -2"]
    assert (node.smi.status, node.smi.driver, node.boot_id) == ("answered", "590.44.01", BOOT_ID)
    assert [(event.boot, event.number) for event in node.events] == [(0, 79), (-1, 31)]
    assert [log.boot for log in node.logs] == [0, -1]
    assert [what for what, _why in node.unseen] == ["kernel logs of earlier boots"]


def test_a_node_without_a_gpu_is_asked_nothing(tmp_path):
    node, stream = node_of(make_node(tmp_path, ASPEED))
    assert stream.asked == [] and node.gpus == () and node.smi.status == "not_asked"
    assert node.unseen == ()


@pytest.mark.parametrize(
    ("card", "loaded"),
    [
        (nvidia(A100, "20b5"), ""),
        (nvidia(A100, "20b5", driver="vfio-pci"), "590.44.01"),
        (MI210, ""),
    ],
    ids=["driver not loaded", "passed through", "AMD"],
)
def test_nvidia_smi_is_not_called_where_it_would_load_the_driver_or_has_no_gpu(
    tmp_path, card, loaded
):
    node, stream = node_of(make_node(tmp_path, card, loaded=loaded), {"dmesg": "x\n"})
    assert "nvidia-smi" not in stream.asked and node.smi == Smi("not_asked", driver=loaded or None)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (Ended(127), "missing", ""),
        (("No devices were found\n", Ended(6)), "failed", "no complete document"),
        (("", Ended(-9)), "failed", "no complete document"),
        ((smi_document(smi_gpu()), Ended(None, too_long=True)), "failed", "more than"),
        (("", Ended(None, hang=Hang("nvidia-smi", 7, 60.0, "D", "x", True))), "hung", ""),
        ((smi_document(smi_gpu()), Ended(14, "WARNING: infoROM")), "answered", ""),
    ],
)
def test_what_becomes_of_nvidia_smi(tmp_path, answer, status, words):
    node, stream = node_of(make_node(tmp_path), {"nvidia-smi": answer, "dmesg": "x\n"})
    assert (node.smi.status, stream.asked.count("nvidia-smi")) == (status, 1)
    assert words in node.smi.error and bool(words) == bool(node.smi.error)
    assert ("nvidia-smi" in dict(node.unseen)) == (status in ("missing", "failed"))


def process(root, pid, state, pending, name="nvidia-smi", flags=0):
    write(root, f"/proc/{pid}/stat", f"{pid} ({name}) {state} 1 {pid} {pid} 0 -1 {flags} 0 0\n")
    write(root, f"/proc/{pid}/comm", f"{name}\n")
    masks = f"SigPnd:\t0000000000000000\nShdPnd:\t{pending:016x}\n"
    write(root, f"/proc/{pid}/status", f"Name:\t{name}\nState:\t{state} (text)\n{masks}")


KILLED = 1 << 8
# PF_EXITING among other flags of a process.
EXITING = 0x400104


@pytest.mark.parametrize(
    ("state", "pending", "flags", "name", "found"),
    [
        ("D", KILLED, 0, "nvidia-smi", True),
        # It has taken SIGKILL, and hangs again where it closes the driver's devices.
        ("D", 0, EXITING, "nvidia-smi", True),
        # Every process that asks a device is in state D for a moment.
        ("D", 0, 0x400100, "nvidia-smi", False),
        ("S", KILLED, EXITING, "nvidia-smi", False),
        ("D", KILLED, EXITING, "dd", False),
    ],
)
def test_no_second_one_is_started_beside_one_that_hangs(
    tmp_path, state, pending, flags, name, found
):
    root = make_node(tmp_path)
    process(root, 4242, state, pending, name, flags)
    node, stream = node_of(root, {"nvidia-smi": smi_document(smi_gpu()), "dmesg": "x\n"})
    assert ("nvidia-smi" not in stream.asked) == found
    if found:
        assert node.smi.status == "hung" and node.smi.hang.pid == 4242 and node.smi.hang.left
    assert (hanging_smi(NodeReader(str(root))) is not None) == found


def test_a_driver_that_hung_when_another_module_asked_it_is_not_asked(tmp_path):
    hang = Hang("nvidia-smi", 7, 60.0, "S", None, False)
    answers = {"nvidia-smi": smi_document(smi_gpu()), "dmesg": "x\n"}
    node, stream = node_of(make_node(tmp_path), answers, hang=hang)
    assert "nvidia-smi" not in stream.asked and (node.smi.status, node.smi.hang) == ("hung", hang)


def on_the_bus(root, *way):
    """Put devices behind each other, each with a link to its place in the tree of buses."""
    place = "/sys/devices/pci0000:00"
    for function in way:
        place += f"/{function.address}"
        link = root / f"sys/bus/pci/devices/{function.address}"
        for file in link.iterdir():
            if not file.is_symlink():
                write(root, f"{place}/{file.name}", file.read_bytes())
                file.unlink()
            else:
                target = root / place.lstrip("/") / file.name
                target.symlink_to("../../../bus/pci/drivers/nvidia")
                file.unlink()
        link.rmdir()
        link.symlink_to(f"/{place.lstrip('/')}")


def lanes(root, address, current, most):
    pci(root, address, current_link_width=current, max_link_width=most)


@pytest.mark.parametrize(
    ("bridge", "switch", "card", "narrow"),
    [
        ((16, 16), (16, 16), (16, 16), ()),
        # A slot of eight lanes is no fault.
        ((8, 8), (8, 16), (16, 16), ()),
        ((16, 16), (16, 16), (8, 16), (Narrow("0000:02:00.0", 8, 16),)),
        # The switch shares eight lanes among its cards, and has sixteen.
        ((8, 16), (8, 16), (16, 16), (Narrow("0000:01:00.0", 8, 16),)),
        # A device that does not answer has 63.
        ((16, 16), (16, 16), (63, 63), ()),
        (("", ""), (16, 16), (8, 16), (Narrow("0000:02:00.0", 8, 16),)),
    ],
)
def test_links_with_fewer_lanes_than_their_ends(tmp_path, bridge, switch, card, narrow):
    root = make_node(tmp_path, BRIDGE, SWITCH, CARD)
    for function, width in ((BRIDGE, bridge), (SWITCH, switch), (CARD, card)):
        lanes(root, function.address, *width)
    on_the_bus(root, BRIDGE, SWITCH, CARD)
    node, _stream = node_of(root)
    assert node.gpus[0].narrow == narrow


def test_a_link_in_a_virtual_machine_is_not_judged(tmp_path):
    """A T4 of a cloud, on the root bus: its own 8 of 16 lanes say nothing."""
    root = make_node(tmp_path)
    lanes(root, A100, 8, 16)
    node, _stream = node_of(root)
    assert node.gpus[0].narrow == () and node.gpus[0].values["link"]["width"] == 8


def test_a_card_that_fell_off_the_bus(tmp_path):
    root = make_node(tmp_path)
    (root / f"sys/bus/pci/devices/{A100}/config").write_bytes(b"\xff" * 64)
    assert node_of(root)[0].gpus[0].lost


AER = "RxErr 3\nBadTLP 0\nTOTAL_ERR_COR 3"


def test_values_of_sysfs(tmp_path):
    root = make_node(tmp_path, MI210)
    pci(root, MI210.address, aer_dev_correctable=AER, aer_dev_nonfatal="TOTAL_ERR_NONFATAL 2")
    pci(root, MI210.address, current_link_width=16, max_link_width=16)
    pci(root, MI210.address, current_link_speed="16.0 GT/s PCIe", max_link_speed="Unknown")
    pci(root, f"{MI210.address}/ras", umc_err_count="ue: 1\nce: 4\nde: 9", features="0x1")
    pci(root, f"{MI210.address}/ras", gfx_err_count="ue: 2\nce: 0")
    pci(root, f"{MI210.address}/hwmon/hwmon3", temp1_input=90500, temp1_crit=100000)
    (gpu,) = node_of(root)[0].gpus
    assert (gpu.vendor, gpu.kernel_driver) == ("amd", "amdgpu")
    assert gpu.values == {
        "link": {"width": 16, "width_max": 16, "speed": "16.0 GT/s PCIe", "speed_max": None},
        "aer": {"correctable": 3, "nonfatal": 2, "fatal": None},
        "ras": {"corrected": 4, "uncorrected": 3},
        "temperature": {"gpu": 90, "slowdown": 100, "margin": 10},
    }


def logs(answers, **options):
    stream = StandinStream(answers)
    ticks = iter(range(1000))
    found = read_logs(NodeReader("/nowhere"), stream, Request(**options), lambda: next(ticks))
    return (*found, stream.asked)


def test_dmesg_where_the_journal_has_nothing(tmp_path):
    root = make_node(tmp_path)
    write(root, "/proc/stat", "btime 1700000000\n")
    answers = {"journalctl 0": Ended(0), "dmesg": f"[    7.500000] {xid(79)}\n"}
    node, stream = node_of(root, answers)
    assert node.events[0].last == 1_700_000_007.5 and node.logs[0].source == "dmesg"
    # dmesg has no earlier boots.
    assert stream.asked[-1] == "dmesg"


def test_a_log_that_cannot_be_read_is_told():
    denied = Ended(1, "dmesg: read kernel buffer failed: Operation not permitted\n")
    events, read, unseen, _asked = logs({"journalctl 0": Ended(0), "dmesg": denied})
    assert (events, read) == ((), ())
    (why,) = unseen
    assert why == (
        "kernel log",
        "journalctl: it printed nothing; dmesg: dmesg: read kernel buffer failed: Operation not "
        "permitted",
    )


def test_a_log_that_was_read_in_part_is_told():
    half = (journal((9, xid(79))), Ended(None, hang=Hang("journalctl", 1, 60.0, "R", None, False)))
    long = (journal((-9, xid(79))), Ended(None, too_long=True))
    _events, read, unseen, _asked = logs({"journalctl 0": half, "journalctl -1": long}, boots=2)
    assert [log.incomplete for log in read] == [
        "only 108 bytes were read in 0.1 s",
        "only 108 bytes of it were read",
    ]
    assert [what for what, _why in unseen] == ["kernel log of boot 0", "kernel log of boot -1"]


@pytest.mark.parametrize(
    ("ended", "why"),
    [
        (Ended(-9), "it ended with signal 9"),
        (Ended(1, "Bad message\n"), "it ended with status 1: Bad message"),
    ],
)
def test_a_log_whose_reader_failed_in_the_middle_is_told(ended, why):
    _events, (read,), unseen, _asked = logs(
        {"journalctl 0": (journal((9, xid(79))), ended)}, boots=1
    )
    assert read.incomplete == why and unseen == [("kernel log of boot 0", why)]


def test_what_took_the_time_leaves_little_of_it_to_what_is_asked_instead():
    """A journal that hangs, then dmesg: together they take the time once."""
    given = []

    def stream(argv, _consume, seconds, _most):
        given.append((argv[0], seconds))
        clock[0] += seconds
        return Ended(None, hang=Hang(argv[0], 1, seconds, "D", None, True))

    clock = [0.0]
    read_logs(NodeReader("/nowhere"), stream, Request(timeout=60), lambda: clock[0])
    assert given == [("journalctl", 60), ("dmesg", 5), ("dmesg", 5)]


def test_the_time_for_all_logs_is_one():
    answers = {f"journalctl {-boot}": journal((1, xid(79))) for boot in range(9)}
    _events, read, unseen, asked = logs(answers, boots=9, timeout=5)
    assert len(read) == len(asked) < 5
    assert "or the time limit was reached" in unseen[-1][1]
