# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG on a node with systemd: the module, the role and the unit, with a stand-in of nvidia-smi.

The PCI tree has an A10; the stand-in shows a card with the profiles of an A100 in its place, or of
an H100, which loses its MIG mode with the kernel's module.
"""

from __future__ import annotations

import contextlib
import json
import time

import pytest

from tests.integration.fleet.playbooks import ETC, on_nodes, play
from tests.integration.killed import (
    LEFT,
    Started,
    assert_same,
    kill_at_random_points,
    whole_runs,
)
from tests.testbed import inventory, repository
from tests.testbed.engine import docker
from tests.testbed.fleet import chosen
from tests.testbed.nodes import execute
from tests.unit.fixtures.mig_node import SMI, card

pytestmark = pytest.mark.full(why="another driver's tool on a node of test_site.py")

NODE = "gpu3"
LAYOUT = "nvidia-smi mig -lgi | grep -o 'MIG .*' | awk '{print $2, $5}'"
SEVEN = "\n".join(f"1g.5gb {start}:1" for start in range(7))
FIRST = {"nvidia_mig_config": "all-1g.5gb"}
# The cards that the stand-in shows.
CARDS = "/etc/standin-mig.json"
# A stand-in of the kubelet, which keeps the layout that is there when it begins.
KUBELET = "/etc/systemd/system/kubelet.service"
PROGRAM, SEEN = "/usr/local/sbin/kubelet-standin", "/var/lib/testbed/kubelet-saw"
KUBELET_UNIT = f"""\
[Service]
ExecStart=/bin/sh {PROGRAM}

[Install]
WantedBy=multi-user.target
"""


@contextlib.contextmanager
def cards_of(node, device_id="20b0"):
    """The stand-in's tool shows such a card in the place of each GPU of a node."""
    # Only a generation that can have MIG is reset: the PCI bus of gpu2 has V100.
    resets = node.name == NODE
    cards = [
        {**card(number, device_id, needs_reset=resets), "address": gpu.address}
        for number, gpu in enumerate(node.gpus)
    ]
    execute(node, "cp", "-a", "/usr/bin/nvidia-smi", "/root/nvidia-smi")
    execute(node, "tee", "/usr/bin/nvidia-smi", stdin=SMI.read_text(encoding="utf-8"))
    execute(node, "tee", CARDS, stdin=json.dumps(cards))
    yield
    play("teardown", "--limit", node.name)
    execute(
        node, "sh", "-c", f"mv /root/nvidia-smi /usr/bin/nvidia-smi; rm -f {CARDS} "
        "/run/standin-* /var/lib/standin-mig-mode.json",
    )  # fmt: skip


@pytest.fixture
def node(fleet, request):
    node = {one.name: one for one in fleet}[NODE]
    with cards_of(node, getattr(request, "param", "20b0")):
        yield node


def site(*arguments, **variables):
    return play("site", "--tags", "mig", "--limit", NODE, *arguments, variables=variables)


def words(run):
    """Return the screen as one line, so that wrapped texts can be found."""
    return " ".join(run.output.split())


def on_node(command):
    return on_nodes(command, NODE)[NODE]


def test_s15_partition_boot_refusal_and_teardown(node, count_calls):
    before = on_node(ETC)
    predicted = site("--check", "--diff", **FIRST)
    assert predicted.status == 0, predicted.output
    assert on_node(ETC) == before
    run = site("--diff", **FIRST)
    assert run.status == 0, run.output
    assert run.changed() == predicted.changed()
    assert "mig: partition GPU 0: 7x 1g.5gb" in run.output
    assert on_node(LAYOUT) == SEVEN
    with count_calls() as calls:
        again = site(**FIRST)
    assert (again.stats[NODE]["changed"], calls[NODE]) == (0, 1)
    assert ("Partition", NODE) not in again.answers

    # As after a reboot.
    on_node("rm -f /run/standin-mig.json; systemctl restart kubegpu-mig.service")
    assert on_node(LAYOUT) == SEVEN
    assert on_node("systemctl is-enabled kubegpu-mig.service") == "enabled"
    before_units = on_node("systemctl show kubegpu-mig.service --property=Before")
    for unit in ("docker", "containerd", "kubelet"):
        assert f"{unit}.service" in before_units

    on_node("touch /dev/nvidia0; systemd-run --unit training sh -c 'exec sleep 600 < /dev/nvidia0'")
    refused = site(nvidia_mig_config="all-3g.20gb")
    assert refused.status != 0
    assert "GPU 0 (0000:00:07.0) is in use: 7x 1g.5gb at 0" in refused.messages()
    assert "used by sleep (pid " in refused.messages()
    assert on_node(LAYOUT) == SEVEN
    on_node("systemctl stop training; rm -f /dev/nvidia0")

    configs = {
        "mixed": [
            {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.5gb": 2, "3g.20gb": 1}}
        ]
    }
    mixed = site(nvidia_mig_config="mixed", nvidia_mig_configs=configs)
    assert mixed.status == 0, mixed.output
    assert on_node(LAYOUT) == "1g.5gb 4:1\n1g.5gb 5:1\n3g.20gb 0:4"

    configs["mixed"].append({"devices": [7], "mig-enabled": True, "mig-devices": {"1g.5gb": 7}})
    noted = site("--check", nvidia_mig_config="mixed", nvidia_mig_configs=configs)
    assert noted.status == 0, noted.output
    assert noted.stats[NODE]["changed"] == 0, noted.changed()
    assert "names GPU 7, which this node does not have" in words(noted)

    torn = play("teardown", "--limit", NODE)
    assert torn.status == 0, torn.output
    assert on_node("nvidia-smi --query-gpu=mig.mode.current,mig.mode.pending") == (
        "Disabled, Disabled"
    )
    assert on_node(ETC) == before
    assert on_node("ls /var/lib/kubegpu 2>/dev/null") == ""
    # It had run, as at a boot.
    assert on_node("systemctl list-units --all --no-legend 'kubegpu-mig*'") == ""


def test_s15_a_gpu_that_the_driver_does_not_show_keeps_its_record_until_it_is_replaced(node):
    before = on_node(ETC)
    run = site(**FIRST)
    assert run.status == 0, run.output
    cards = execute(node, "cat", CARDS)
    # As where its driver has lost it: it is on the PCI bus.
    execute(node, "tee", CARDS, stdin="[]")
    for arguments in (["--check"], []):
        refused = play("teardown", *arguments, "--limit", NODE)
        assert refused.status != 0
        assert "The MIG layout of GPU-0 (0000:00:07.0) cannot be restored" in refused.messages()
        assert "Next step: Load the driver" in refused.messages()
        assert refused.stats[NODE]["changed"] == 0, refused.changed()
    execute(node, "tee", CARDS, stdin=cards)
    assert on_node(LAYOUT) == SEVEN
    assert on_node("systemctl is-enabled kubegpu-mig.service") == "enabled"
    # Another card is in its place.
    execute(node, "tee", CARDS, stdin=cards.replace('"GPU-0"', '"GPU-9"'))
    torn = play("teardown", "--limit", NODE)
    assert torn.status == 0, torn.output
    assert "is not in this machine any more" in words(torn)
    execute(node, "tee", CARDS, stdin=cards)
    assert on_node(ETC) == before
    assert on_node("ls /var/lib/kubegpu 2>/dev/null") == ""


@contextlib.contextmanager
def kubelet(node):
    """A kubelet that starts with the next boot."""
    execute(node, "tee", PROGRAM, stdin=f"{LAYOUT} > {SEEN}\nexec sleep infinity\n")
    execute(node, "tee", KUBELET, stdin=KUBELET_UNIT)
    on_node("systemctl daemon-reload; systemctl enable kubelet")
    try:
        yield
    finally:
        on_node(f"systemctl disable --now kubelet; rm -f {KUBELET} {PROGRAM} {SEEN}; "
                "systemctl daemon-reload")  # fmt: skip


def boot(node):
    """Restart the node: systemd stops and starts all units, and /run is empty in between."""
    docker("restart", "-t", "60", node.container)
    deadline = time.monotonic() + 180
    state = ""
    while state not in ("running", "degraded"):
        assert time.monotonic() < deadline, f"systemd is {state}"
        time.sleep(0.5)
        state = execute(node, "systemctl", "is-system-running", check=False).strip()
    # The engine can have given it another address.
    inventory.write(chosen(), repository.up())


def when(unit, what):
    """Return when a unit's program began or ended, in microseconds since the machine's boot."""
    return int(on_node(f"systemctl show -P ExecMain{what}TimestampMonotonic {unit}"))


@pytest.mark.parametrize(
    ("node", "profile"),
    [pytest.param("20b0", "1g.5gb", id="ampere"), pytest.param("2330", "1g.10gb", id="hopper")],
    indirect=["node"],
)
def test_s15_a_boot_makes_the_layout_before_kubelet_and_runtimes_begin(node, profile):
    asked = {"nvidia_mig_config": f"all-{profile}"}
    seven = SEVEN.replace("1g.5gb", profile)
    run = site(**asked)
    assert run.status == 0, run.output
    assert on_node(LAYOUT) == seven
    with kubelet(node):
        on_node("touch /run/before-the-boot")
        boot(node)
        assert on_node("ls /run/before-the-boot 2>/dev/null") == ""
        assert on_node(LAYOUT) == seven
        assert on_node("systemctl is-active kubegpu-mig.service kubelet.service") == (
            "active\nactive"
        )
        # What one of those that need it saw when it began.
        written = f"timeout 30 sh -c 'until [ -s {SEEN} ]; do sleep 0.1; done'; cat {SEEN}"
        assert on_node(written) == seven
        made = when("kubegpu-mig", "Exit")
        began = {unit: when(unit, "Start") for unit in ("containerd", "docker", "kubelet")}
        assert 0 < made < min(began.values()), began
    with_layout = site(**asked)
    assert with_layout.status == 0, with_layout.output
    assert with_layout.stats[NODE]["changed"] == 0, with_layout.changed()


LAYOUTS = {
    "all-1g.5gb": SEVEN,
    "all-3g.20gb": "3g.20gb 0:4\n3g.20gb 4:4",
    "all-disabled": "",
}
# One with four GPUs, and one with one.
KILLED = ("gpu2", "gpu3")
PARTITIONED = f"({ETC}); {LEFT}; systemctl is-enabled kubegpu-mig"


def test_partitioning_that_is_killed_converges(fleet, tmp_path):
    """Three layouts in turn, killed at random points; the next run has that of a whole one."""
    names = list(LAYOUTS)
    nodes = [one for one in fleet if one.name in KILLED]
    where = ":".join(KILLED)

    def asked(number):
        return {"nvidia_mig_config": names[number % len(names)]}

    def start(number, node):
        return Started(
            "site", "--tags", "mig", "--limit", node.name, variables=asked(number),
            screen=tmp_path / f"screen-{number}-{node.name}",
        )  # fmt: skip

    def partition(number, what=""):
        run = play("site", "--tags", "mig", "--limit", where, variables=asked(number))
        assert run.status == 0, f"{what}\n{run.output}"
        return run

    def assert_layout(number, what):
        layout = LAYOUTS[names[number % len(names)]]
        for node in nodes:
            of_all = "\n".join(filter(None, [layout] * len(node.gpus)))
            assert on_nodes(LAYOUT, node.name)[node.name] == of_all, f"{node.name}: {what}"

    def survived(number, what):
        partition(number, what)
        assert_layout(number, what)
        found = on_nodes(PARTITIONED, where)
        for name in KILLED:
            assert_same(found[name], right[names[number % len(names)]][name], f"{name}: {what}")
        for text in on_nodes("cat /var/lib/kubegpu/state.json", where).values():
            json.loads(text)
        again = partition(number, what)
        changed = {name: one["changed"] for name, one in again.stats.items()}
        assert not any(changed.values()), f"{what}\n{again.output}"

    with contextlib.ExitStack() as stack:
        for node in nodes:
            stack.enter_context(cards_of(node))
        right = {}
        # As a whole run leaves it, after each layout was there once.
        for number in range(2 * len(names)):
            partition(number)
            assert_layout(number, "a whole run")
            right[names[number % len(names)]] = on_nodes(PARTITIONED, where)
        whole = whole_runs(start, nodes)
        for run in whole:
            assert run.wait() == 0, run.text
        seconds = {node.name: (0.5, run.lasted) for node, run in zip(nodes, whole, strict=True)}
        kill_at_random_points(start, survived, nodes, seconds=seconds)
