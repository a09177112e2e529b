# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer metrics of a host: its exporter runs and shows each GPU, or the reason why not."""

from __future__ import annotations

import copy
import os

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.options import read_options
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify import verify
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.metrics import (
    Page,
    judge_metrics,
    read_page,
)
from tests.testbed.dcgm_exporter import text
from tests.unit.fixtures.node_facts import P4, node

URL = "http://127.0.0.1:9400/metrics"
ADDRESSES = ("0000:00:05.0", "0000:00:06.0")
GPUS = [{**P4, "address": address, "kernel_driver": "nvidia"} for address in ADDRESSES]
UNITS = {
    "packages": ("nvidia-dcgm", "nvidia-dcgm-exporter"),
    "container": ("kubegpu-dcgm-exporter",),
    "textfile": ("kubegpu-metrics.timer",),
}


def host(method, **exporter):
    found = copy.deepcopy(node(gpus=GPUS))
    place = {"output": "/x/kubegpu.prom"} if method == "textfile" else {"page": URL}
    found["exporter"].update(method=method, expected_gpus=list(ADDRESSES), **place)
    found["exporter"]["units"].update(dict.fromkeys(UNITS.get(method, ()), "active"))
    found["exporter"].update(exporter)
    return found


def written(*addresses):
    return "".join(
        f'kubegpu_gpu_info{{gpu="0",uuid="GPU-1",pci_bus_id="{one}",name="P4"}} 1\n'
        for one in addresses
    )


GOOD = {
    "packages": text("gpu1", 2, ""),
    "container": text("gpu1", 2, ""),
    "textfile": written(*ADDRESSES),
}


@pytest.mark.parametrize("method", GOOD)
def test_a_sample_for_each_gpu(method):
    found = judge_metrics(host(method), Page(GOOD[method]))
    assert (found.layer, found.ok) == ("metrics", True)
    place = "/x/kubegpu.prom" if method == "textfile" else URL
    assert found.proof == f"{place} has samples of 2 GPUs"


@pytest.mark.parametrize("method", GOOD)
def test_a_gpu_without_samples(method):
    one = written(ADDRESSES[0]) if method == "textfile" else text("gpu1", 1, "")
    found = judge_metrics(host(method), Page(one))
    assert (found.ok, found.code) == (False, "gpu_without_metrics")
    assert "1 of 2 GPUs" in found.cause
    assert found.evidence == (f"missing: {ADDRESSES[1]}" if method == "textfile" else "")


@pytest.mark.parametrize("method", GOOD)
def test_a_gpu_that_is_lost_is_missed_and_one_of_a_virtual_machine_is_not(method):
    lost = host(method)
    lost["gpus"] = lost["gpus"][:1]
    one = written(ADDRESSES[0]) if method == "textfile" else text("gpu1", 1, "")
    assert judge_metrics(lost, Page(one)).code == "gpu_without_metrics"
    passed = host(method)
    passed["gpus"][1]["kernel_driver"] = "vfio-pci"
    assert judge_metrics(passed, Page(one)).ok is True


def test_a_file_names_the_gpu_that_another_one_does_not_stand_for():
    found = judge_metrics(host("textfile"), Page(written(ADDRESSES[0], "0000:0c:00.0")))
    assert found.evidence == f"missing: {ADDRESSES[1]}"


@pytest.mark.parametrize(
    ("found", "page", "ok", "code", "word"),
    [
        (host("packages", page="https://127.0.0.1:9400/metrics"), None, None, "page_not_read",
         "gpu_monitoring_web_config"),
        (host("packages"), Page(None, "refused"), False, "exporter_no_answer", URL),
        (host("textfile"), Page(None, "no"), False, "exporter_no_answer", "/x/kubegpu.prom"),
        (host("textfile"), Page(written(*ADDRESSES), age=301), False, "metrics_old", "301 seconds"),
        (host("container", units={"kubegpu-dcgm-exporter": "failed"}), Page(GOOD["container"]),
         False, "exporter_not_running", "(container) does not run"),
        (host("packages", units={"nvidia-dcgm-exporter": "active"}), Page(GOOD["packages"]),
         False, "exporter_not_running", "(packages) does not run"),
        (host(""), None, False, "exporter_missing", "no exporter"),
        (host("", foreign_units={"dcgm-exporter": "active"}), None, None, "foreign_exporter",
         "dcgm-exporter"),
        (host("", units={"nvidia-dcgm-exporter": "active"}), None, None, "foreign_exporter",
         "nvidia-dcgm-exporter"),
    ],
)  # fmt: skip
def test_why_not(found, page, ok, code, word):
    result = judge_metrics(found, page)
    assert (result.ok, result.code) == (ok, code)
    assert word in result.cause
    assert result.next_step or ok is None


def test_a_page_is_read_by_http_and_a_file_with_its_age(tmp_path):
    (tmp_path / "x").mkdir()
    file = tmp_path / "x" / "kubegpu.prom"
    file.write_text("a 1\n")
    os.utime(file, (1000, 1000))
    reader, asked = NodeReader(str(tmp_path)), []

    def fetch(url):
        asked.append(url)
        raise KubegpuError("It cannot be read.", evidence="refused")

    found = read_page(host("textfile")["exporter"], reader, fetch, 1060.0)
    assert (found.text, found.age, asked) == ("a 1\n", 60.0, [])
    missing = read_page(host("textfile", output="/no.prom")["exporter"], reader, fetch, 1060.0)
    assert missing.text is None
    assert read_page(host("packages")["exporter"], reader, lambda _url: "b", 0.0) == Page("b")
    assert read_page(host("packages")["exporter"], reader, fetch, 0.0) == Page(None, "refused")
    tls = host("packages", page="https://x:1/metrics")["exporter"]
    assert read_page(tls, reader, fetch, 0.0) is None
    assert asked == [URL]


@pytest.mark.parametrize(
    ("listen", "more", "page"),
    [
        (":9400", {}, URL),
        ("0.0.0.0:9401", {}, "http://127.0.0.1:9401/metrics"),
        ("[::]:9400", {}, "http://[::1]:9400/metrics"),
        ("10.0.0.7:9400", {}, "http://10.0.0.7:9400/metrics"),
        (":9400", {"web_config": "/etc/web.yml"}, "https://127.0.0.1:9400/metrics"),
    ],
)
def test_where_the_page_is(listen, more, page):
    assert read_options({"listen": listen, **more}).page == page


def test_the_layer_is_judged_where_it_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(verify, "gather", lambda *_a, **_k: {**host("packages"), "gpus": []})
    monkeypatch.setattr(verify, "read_text", lambda *_a, **_k: text("gpu1", 2, ""))
    monkeypatch.setattr(verify, "check_options", lambda *_a: None)
    monkeypatch.setattr(verify, "read_probe_options", lambda _params: None)
    params = {
        "containerd_config_path": "/c", "docker_config_path": "/d", "gpus": None, "cdi": False,
        "driver_version": "", "require_default": [], "layers": ["pci"], "driver_timeout": 60,
        "driver_hang": None,
    }  # fmt: skip
    dependencies = type("Node", (), {"reader": NodeReader(str(tmp_path))})
    monkeypatch.setattr(verify, "Collector", lambda *_a: None)
    for asked, layers in ((True, ["pci", "metrics"]), (False, ["pci"])):
        result = verify.verify_node({**params, "metrics": asked}, dependencies, False)
        assert [one["layer"] for one in result["layers"]] == layers
