# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook diagnose over ssh: bare nodes, whole ones, and causes that are made on them.

The PCI tree and NVIDIA's programs are stand-ins; containerd, dockerd, systemd and the kernel's log
are real.
"""

from __future__ import annotations

import contextlib
import json
import tarfile
import time

import pytest

from tests.integration.fleet.playbooks import on_nodes, play, run_module
from tests.integration.killed import (
    LEFT,
    Started,
    assert_same,
    kill_at_random_points,
    whole_runs,
)
from tests.unit.fixtures.health_node import smi_document, smi_gpu

pytestmark = pytest.mark.full(why="reads nodes of test_site.py; the causes are unit tests by name")

BARE, WHOLE, WITHOUT = "gpu1", "gpu3", "cpu1"
HOSTS = f"{BARE}:{WHOLE}:{WITHOUT}"
RUNTIME = "/usr/bin/nvidia-container-runtime"
SMI = "/usr/bin/nvidia-smi"
SECRET = "hunter2"
LIMIT = 30


def diagnose(dest, limit=HOSTS, **variables):
    """Run the playbook, which must change nothing; return the run and the result in its file."""
    run = play(
        "diagnose", "--limit", limit, variables={"gpu_diagnose_file": str(dest), **variables}
    )
    assert {host: one["changed"] for host, one in run.stats.items()} == dict.fromkeys(run.stats, 0)
    return run, json.loads(dest.read_text())


def roots(result, host):
    return [
        one["id"]
        for one in result["findings"]
        if one["host"] == host and one["severity"] == "error"
    ]


@pytest.fixture
def dest(tmp_path):
    return tmp_path / "diagnosis.json"


def test_nodes_where_site_never_ran(fleet, dest):
    before = on_nodes("find /etc /var/lib/kubegpu -newer /proc/1/stat | sort", HOSTS)
    run, result = diagnose(dest)
    assert run.status != 0 and result["ok"] is False, run.output
    assert roots(result, BARE) == ["driver_missing", "toolkit_missing"]
    assert roots(result, WHOLE) == ["toolkit_missing"]
    by_host = {one["host"]: one for one in result["findings"]}
    assert "handler_missing" in by_host[WHOLE]["follows"]
    assert f"kubegpu.nodes.site --limit {WHOLE} " in by_host[WHOLE]["fix"]
    assert result["hosts"][WITHOUT]["verdict"] == "no GPU"
    assert {
        "host": "",
        "what": "the cluster",
        "why": "kubegpu_kube has neither kubeconfig nor host",
    } in result["unseen"]
    failed = {host for host, one in run.stats.items() if one["failures"]}
    assert failed == {BARE, WHOLE}
    assert on_nodes("find /etc /var/lib/kubegpu -newer /proc/1/stat | sort", HOSTS) == before
    # What nobody wants as a failure is none.
    assert diagnose(dest, WHOLE, gpu_diagnose_fail_on="never")[0].status == 0


def test_without_root_what_cannot_be_seen_is_told_and_no_fault(fleet, dest):
    run, result = diagnose(dest, WHOLE, kubegpu_become=False, ansible_become=False)
    # The toolkit is missing; what only root can read is not a reason more.
    assert run.status == 2, run.output
    assert roots(result, WHOLE) == ["toolkit_missing"], run.output
    unseen = {row["what"] for row in result["unseen"] if row["host"] == WHOLE}
    assert "the container runtimes" in unseen, result["unseen"]
    assert "not checked: the container runtimes" in run.output


@contextlib.contextmanager
def broken(command, fix, node=WHOLE):
    try:
        on_nodes(command, node)
        yield
    finally:
        on_nodes(fix, node)


def script(path, text):
    """Return commands that put a script in the place of a program, and those that fix it."""
    quoted = text.replace("'", "'\\''")
    put = f"mv {path} {path}.away; printf '%s\\n' '#!/bin/sh' '{quoted}' >{path}; chmod 755 {path}"
    return put, f"mv {path}.away {path}"


def handlers(state):
    def change():
        more = {"name": "nvidia", "state": state}
        run_module(WHOLE, "kubegpu.nodes.containerd_runtime", {**more, "restart": True})
        run_module(WHOLE, "kubegpu.nodes.docker_runtime", {**more, "reload": True})

    return change


def test_a_whole_node_and_one_cause_at_a_time(converged, dest):
    run, result = diagnose(dest, f"{WHOLE}:{WITHOUT}")
    assert run.status == 0 and result["ok"] and roots(result, WHOLE) == [], run.output
    assert result["hosts"][WHOLE]["verdict"] == "ok"
    address = result["hosts"][WHOLE]["devices"][0]["address"]

    words = "Failed to initialize NVML: Driver/library version mismatch"
    with broken(*script(SMI, f"echo '{words}'; exit 18")):
        run, result = diagnose(dest, WHOLE, gpu_diagnose_container=True)
    assert roots(result, WHOLE) == ["driver_library_mismatch"], result["findings"]
    assert "ansible.builtin.reboot" in result["findings"][0]["fix"]

    with broken(f"mv {RUNTIME} {RUNTIME}.away", f"mv {RUNTIME}.away {RUNTIME}"):
        _run, result = diagnose(dest, WHOLE)
    assert roots(result, WHOLE) == ["toolkit_missing"], result["findings"]

    handlers("absent")()
    try:
        _run, result = diagnose(dest, WHOLE)
    finally:
        handlers("present")()
    assert roots(result, WHOLE) == ["handler_missing"], result["findings"]

    document = smi_document(smi_gpu(address, remapped_row_failure="Yes"))
    assert SECRET in document
    with broken(*script(SMI, f"cat <<'END'\n{document}END")):
        run, result = diagnose(dest, WHOLE)
    (one,) = (one for one in result["findings"] if one["severity"] == "error")
    assert (one["id"], one["gpu"]) == ("row_remap_failed", address)
    assert "process_name" in document and "process_name" not in dest.read_text()
    assert SECRET not in dest.read_text() and SECRET not in run.output

    # The earlier result has a GPU that is not on the bus.
    result["hosts"][WHOLE]["devices"].append({"address": "0000:00:1f.0", "uuid": "", "product": ""})
    dest.write_text(json.dumps(result))
    _run, result = diagnose(dest, WHOLE)
    assert roots(result, WHOLE) == ["gpu_missing"], result["findings"]
    assert "0000:00:1f.0" in result["findings"][0]["cause"]
    # Only what was seen last is compared.
    run, result = diagnose(dest, WHOLE)
    assert run.status == 0 and result["ok"], run.output


def test_a_driver_that_hangs_is_asked_once_and_ends_the_run_in_time(converged, dest):
    """In the place of state D, which only a kernel can make: it ignores to be told to end."""
    asked = "/run/kubegpu-standin-asked"
    text = f"echo $$ >>{asked}; trap '' TERM INT; while :; do sleep 1; done"
    put, fix = script(SMI, text)
    with broken(f"rm -f {asked}; {put}", f"{fix}; rm -f {asked}"):
        begin = time.monotonic()
        run, result = diagnose(dest, WHOLE, gpu_diagnose_timeout=LIMIT, gpu_diagnose_container=True)
        seconds = time.monotonic() - begin
        (pids,) = on_nodes(f"cat {asked}", WHOLE).values()
        (left,) = on_nodes(
            f"for pid in $(cat {asked}); do kill -0 $pid 2>/dev/null && echo $pid; done", WHOLE
        ).values()
    assert roots(result, WHOLE) == ["driver_hangs"], result["findings"]
    assert len(pids.split()) == 1, pids
    assert left == "", left
    # A second wait would take as long again. The rest is Ansible's time, on a busy machine 14 s.
    assert seconds < 2 * LIMIT, f"{seconds:.1f} s\n{run.output}"


def test_hostile_words_of_a_node_are_shown_as_words(converged, dest):
    # What begins like a document is none of its own words: the facts drop it.
    words = "failed: <script>alert(1)</script> {{ 7*7 }}"
    with broken(*script(SMI, f"printf '%s\\n\\033[2J' '{words}'; exit 255")):
        run, result = diagnose(dest, WHOLE)
    text = json.dumps(result)
    assert "<script>alert(1)</script> {{ 7*7 }}" in text
    assert "\\u001b" not in text and "\x1b[2J" not in run.output


PLANTED = f"token={SECRET} https://ops:{SECRET}@proxy.example/x"
CONFIGURATION = "/etc/modprobe.d/nvidia-standin.conf"
PLANT = f"""
echo '# {PLANTED}' >{CONFIGURATION}
mkdir -p /root/.kube && echo 'users: [{{user: {{token: {SECRET}}}}}]' >/root/.kube/config
systemd-run --quiet --wait --collect --unit nvidia-imex --setenv=TOKEN={SECRET} \
    sh -c 'echo said {PLANTED}'
"""


def test_a_support_bundle_has_no_secrets_and_a_list_of_what_is_in_it(converged, dest, tmp_path):
    bundle = tmp_path / "bundle.tar.gz"
    asked = {"gpu_diagnose_file": str(dest), "gpu_diagnose_bundle_file": str(bundle)}
    with broken(PLANT, f"rm -rf {CONFIGURATION} /root/.kube"):
        predicted = play("diagnose", "--check", "--limit", WHOLE, variables=asked)
        assert predicted.status == 0 and not bundle.exists(), predicted.output
        run = play("diagnose", "--limit", WHOLE, variables=asked)
    assert run.status == 0, run.output
    assert run.stats[WHOLE]["changed"] == predicted.stats[WHOLE]["changed"] == 1
    with tarfile.open(bundle) as tar:
        content = {one.name.partition("/")[2]: tar.extractfile(one).read().decode() for one in tar}
    names = [one["name"] for one in json.loads(content.pop("MANIFEST.json"))["files"]]
    assert set(names) == set(content)
    for name in (
        "diagnosis.json", f"hosts/{WHOLE}/facts.json", f"hosts/{WHOLE}/logs/nvidia-imex.log",
        f"hosts/{WHOLE}/config{CONFIGURATION}",
    ):  # fmt: skip
        assert name in names, name
    for shown in (run.output, predicted.output):
        assert f"In {bundle}" in shown and "Not read" in shown
    assert 'said token="***" https://***@' in content[f"hosts/{WHOLE}/logs/nvidia-imex.log"]
    whole = "\n".join(content.values())
    assert SECRET not in whole and SECRET not in run.output and "process_name" not in whole


def test_a_bundle_that_is_killed_is_whole_or_the_earlier_one(converged, started, tmp_path):
    """Killed at random points: no file is torn; the next run leaves one bundle, and no more."""
    folder = tmp_path / "bundles"
    folder.mkdir()
    bundle, found = folder / "bundle.tar.gz", folder / "diagnosis.json"
    asked = {"gpu_diagnose_file": str(found), "gpu_diagnose_bundle_file": str(bundle)}

    def start(number, where):
        return Started(
            "diagnose", "--limit", where.name, variables=asked, screen=tmp_path / f"screen-{number}"
        )

    def is_whole():
        """The files that are there can be read to their ends."""
        if found.exists():
            json.loads(found.read_text(encoding="utf-8"))
        if bundle.exists():
            with tarfile.open(bundle) as tar:
                content = {one.name.partition("/")[2]: tar.extractfile(one).read() for one in tar}
            listed = {one["name"] for one in json.loads(content.pop("MANIFEST.json"))["files"]}
            assert listed == set(content)

    node = next(one for one in started if one.name == WHOLE)
    (whole,) = whole_runs(start, [node])
    assert whole.wait() == 0, whole.text
    names = {path.name for path in folder.iterdir()}
    assert names == {bundle.name, found.name}
    before = on_nodes(LEFT, WHOLE)[WHOLE]

    def survived(_number, what):
        is_whole()
        run = play("diagnose", "--limit", WHOLE, variables=asked)
        assert run.status == 0, f"{what}\n{run.output}"
        is_whole()
        assert {path.name for path in folder.iterdir()} == names, what
        assert_same(on_nodes(LEFT, WHOLE)[WHOLE], before, what)

    kill_at_random_points(start, survived, [node], seconds={WHOLE: (0.5, whole.lasted)})
