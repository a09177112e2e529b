# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's promtool judges the rules, and fires each alert on made samples."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubegpu.nodes.plugins.filter.gpu_monitoring_plan import (
    gpu_monitoring_plan,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.dashboard import (
    PANELS,
    dashboard_document,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.metrics import (
    DCGM,
    TEXTFILE_METRICS,
    metric_names,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._monitoring.rules import (
    Rule,
    alert_rules,
    rules_document,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._nvidia.xids import XIDS, xid_table
from tests.testbed.paths import HERE
from tests.testbed.prometheus import programs

pytestmark = pytest.mark.full(why="Debian's Prometheus is downloaded")

DCGM_GPU = {"Hostname": "gpu1", "UUID": "GPU-1", "gpu": "0", "job": "kubegpu-dcgm"}
TEXTFILE_GPU = {
    "instance": "gpu2:9100", "gpu": "0", "uuid": "GPU-2", "pci_bus_id": "0000:01:00.0"
}  # fmt: skip
COLLECTED = metric_names(DCGM)


@pytest.fixture(scope="module")
def promtool() -> str:
    return str(programs() / "promtool")


def run(promtool: str, *arguments: str) -> str:
    done = subprocess.run(
        [promtool, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def series(name: str, labels: dict[str, str], values: str) -> dict[str, str]:
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"{name}{{{inside}}}", "values": values}


@dataclass(frozen=True)
class Case:
    """Samples of each minute, when the alert is looked at, and what it then says; None: nothing."""

    alert: str
    samples: tuple[tuple[str, dict[str, str], str], ...]
    at: str
    labels: dict[str, str] | None
    summary: str = ""
    action: str = ""


def gpu(**more: str) -> dict[str, str]:
    return {**DCGM_GPU, **more}


def card(**more: str) -> dict[str, str]:
    return {**TEXTFILE_GPU, **more}


OTHER = gpu(UUID="GPU-9", gpu="1")
TARGET = {"job": "kubegpu-dcgm", "instance": "10.0.0.7:9400"}
FILE = {"file": "/var/lib/prometheus/node-exporter/kubegpu.prom", "instance": "gpu2:9100"}
NODE = {"instance": "gpu2:9100"}
OF_1, OF_2 = "GPU 0 of gpu1", "GPU 0 of gpu2:9100"
ERROR_WORDS = "an error of the GPU or its links."

CASES = {
    "an exporter that is down": Case(
        "KubegpuExporterDown", (("up", TARGET, "0x9"),), "6m", TARGET,
        "The metrics of the GPUs of 10.0.0.7:9400 are missing.",
    ),
    "an exporter that was down for a moment": Case(
        "KubegpuExporterDown", (("up", TARGET, "1 0 0 1x9"),), "6m", None
    ),
    "an exporter of somebody else": Case(
        "KubegpuExporterDown", (("up", {**TARGET, "job": "other"}, "0x9"),), "6m", None
    ),
    "a text file that nobody writes any more": Case(
        "KubegpuExporterDown", (("node_textfile_mtime_seconds", FILE, "0x20"),), "11m", FILE,
        "The metrics of the GPUs of gpu2:9100 are missing.",
    ),
    "a text file of somebody else": Case(
        "KubegpuExporterDown",
        (("node_textfile_mtime_seconds", {**FILE, "file": "/x/smart.prom"}, "0x20"),), "11m", None,
    ),
    "nvidia-smi does not answer": Case(
        "KubegpuExporterDown",
        (("kubegpu_textfile_source_up", {**NODE, "source": "nvidia-smi"}, "0x9"),), "6m",
        {**NODE, "source": "nvidia-smi"}, "The metrics of the GPUs of gpu2:9100 are missing.",
    ),
    "one GPU of two has gone": Case(
        "KubegpuGpuLost",
        (("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x60"),
         ("DCGM_FI_DEV_GPU_TEMP", OTHER, "40x10 stale")),
        "17m", {"Hostname": "gpu1"}, "gpu1 has lost 1 of its GPUs.",
    ),
    "MIG makes several samples of one GPU": Case(
        "KubegpuGpuLost",
        (("DCGM_FI_DEV_GPU_TEMP", gpu(), "40x60"),
         ("DCGM_FI_DEV_GPU_TEMP", gpu(GPU_I_ID="1"), "40x10 stale")),
        "17m", None,
    ),
    "a card has left the PCI bus": Case(
        "KubegpuGpuLost",
        (("kubegpu_gpus_expected", NODE, "2x20"), ("kubegpu_gpu_present", card(), "1x20"),
         ("kubegpu_gpu_present", card(gpu="1", pci_bus_id="0000:02:00.0"), "1x5 0x15")),
        "12m", NODE, "gpu2:9100 has lost 1 of its GPUs.",
    ),
    "all cards are there": Case(
        "KubegpuGpuLost",
        (("kubegpu_gpus_expected", NODE, "1x20"), ("kubegpu_gpu_present", card(), "1x20")),
        "12m", None,
    ),
    "an Xid for a reboot, which the exporter forgets": Case(
        "KubegpuXidError",
        (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="79"), "0 1 1 1 1 1 0x90"),), "50m",
        gpu(xid="79"), f"{OF_1} had Xid 79, {ERROR_WORDS}", "reboot",
    ),
    "the same, an hour later": Case(
        "KubegpuXidError",
        (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="79"), "0 1 1 1 1 1 0x90"),), "80m", None,
    ),
    "an Xid for a reset, the first in the kernel's log": Case(
        "KubegpuXidError",
        (("kubegpu_gpu_xid_errors_total", card(xid="119"), "_x4 1x90"),), "30m",
        card(xid="119"), f"{OF_2} had Xid 119, {ERROR_WORDS}", "reset",
    ),
    "an Xid that was there two hours ago": Case(
        "KubegpuXidError",
        (("kubegpu_gpu_xid_errors_total", card(xid="119"), "1x200"),), "150m", None,
    ),
    "an Xid that is no error": Case(
        "KubegpuXidError", (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="13"), "1x9"),), "5m", None
    ),
    "an Xid of a program": Case(
        "KubegpuXidOfProgram", (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="13"), "1x9"),), "5m",
        gpu(xid="13"), f"{OF_1} had Xid 13, as a rule the fault of a program.",
    ),
    "an Xid that nobody knows": Case(
        "KubegpuXidWarning", (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="480"), "1x9"),), "5m",
        gpu(xid="480"), f"{OF_1} had Xid 480.",
    ),
    "no Xid": Case(
        "KubegpuXidWarning", (("DCGM_EXP_XID_ERRORS_COUNT", gpu(xid="0"), "1x9"),), "5m", None
    ),
    "a memory error": Case(
        "KubegpuMemoryError", (("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", gpu(), "0 0 1x9"),), "5m",
        gpu(), f"{OF_1} had a memory error that could not be corrected.",
    ),
    "memory errors that were corrected": Case(
        "KubegpuMemoryError",
        (("kubegpu_gpu_ecc_errors_total", card(type="corrected"), "0 5 9x9"),), "5m", None,
    ),
    "a memory error of a host without DCGM": Case(
        "KubegpuMemoryError",
        (("kubegpu_gpu_ecc_errors_total", card(type="uncorrected"), "0 0 2x9"),), "5m",
        card(type="uncorrected"), f"{OF_2} had a memory error that could not be corrected.",
    ),
    "a row that could not be remapped": Case(
        "KubegpuRowRemapFailed", (("DCGM_FI_DEV_ROW_REMAP_FAILURE", gpu(), "1x9"),), "1m",
        gpu(), f"{OF_1} could not take a bad row of its memory out of use.",
    ),
    "a card without remapping": Case(
        "KubegpuRowRemapFailed",
        (("DCGM_FI_DEV_ROW_REMAP_FAILURE", gpu(), "9223372036854775794x9"),), "1m", None,
    ),
    "a row that waits for a reset": Case(
        "KubegpuRowRemapPending", (("kubegpu_gpu_row_remap_pending", card(), "1x90"),), "61m",
        card(), f"{OF_2} takes a bad row of its memory out of use with the next reset.",
    ),
    "a hot GPU": Case(
        "KubegpuHot", (("DCGM_FI_DEV_GPU_TEMP", gpu(), "95x9"),), "6m",
        gpu(), f"{OF_1} has 95 degrees Celsius.",
    ),
    "a GPU at the limit": Case(
        "KubegpuHot", (("DCGM_FI_DEV_GPU_TEMP", gpu(), "90x9"),), "6m", None
    ),
    "a GPU without a thermometer": Case(
        "KubegpuHot", (("DCGM_FI_DEV_GPU_TEMP", gpu(), "9223372036854775794x9"),), "6m", None
    ),
    "a GPU that is slowed down": Case(
        "KubegpuSlowedDown",
        (("DCGM_EXP_CLOCK_EVENTS_COUNT", gpu(clock_event="hw_power_brake"), "3x20"),), "11m",
        gpu(clock_event="hw_power_brake"), f"{OF_1} runs slower because of hw_power_brake.",
    ),
    "an idle GPU": Case(
        "KubegpuSlowedDown",
        (("DCGM_EXP_CLOCK_EVENTS_COUNT", gpu(clock_event="gpu_idle"), "9x20"),), "11m", None,
    ),
    "a hot card without DCGM": Case(
        "KubegpuSlowedDown",
        (("kubegpu_gpu_clock_slowdown", card(reason="sw_thermal"), "1x20"),), "11m",
        card(reason="sw_thermal"), f"{OF_2} runs slower because of sw_thermal.",
    ),
    "a GPU that DCGM calls ill": Case(
        "KubegpuUnhealthy",
        (("DCGM_EXP_GPU_HEALTH_STATUS",
          gpu(health_watch="MEM", health_error_code="DCGM_FR_ROW_REMAP_FAILURE"), "20x9"),), "6m",
        gpu(health_watch="MEM", health_error_code="DCGM_FR_ROW_REMAP_FAILURE"),
        f"{OF_1} is not healthy according to DCGM: MEM DCGM_FR_ROW_REMAP_FAILURE.",
    ),
    "a GPU with a warning of DCGM": Case(
        "KubegpuUnhealthy",
        (("DCGM_EXP_GPU_HEALTH_STATUS", gpu(health_watch="MEM"), "10x9"),), "6m", None,
    ),
}  # fmt: skip


def test_each_alert_has_a_case_in_which_it_fires():
    alerts = {rule.name for rule in alert_rules() if not rule.record}
    assert {case.alert for case in CASES.values() if case.labels is not None} == alerts


def _rule(case: Case) -> Rule:
    return next(
        rule
        for rule in alert_rules()
        if (rule.name, dict(rule.labels).get("action", "")) == (case.alert, case.action)
    )


def _expected(case: Case) -> list[dict[str, Any]]:
    if case.labels is None:
        return []
    rule = _rule(case)
    labels = {**case.labels, **dict(rule.labels), "severity": rule.severity, "team": "gpu"}
    annotations = {"summary": case.summary, "next_step": rule.next_step}
    return [{"exp_labels": labels, "exp_annotations": annotations}]


def test_each_alert_fires_when_it_should_and_not_when_it_should_not(promtool, tmp_path):
    (tmp_path / "rules.yml").write_text(json.dumps(rules_document(alert_rules(), {"team": "gpu"})))
    tests = [
        {
            "name": name,
            "interval": "1m",
            "input_series": [series(*sample) for sample in case.samples],
            "alert_rule_test": [
                {"eval_time": case.at, "alertname": case.alert, "exp_alerts": _expected(case)}
            ],
        }
        for name, case in CASES.items()
    ]
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "tests.yml").write_text(json.dumps(document))
    assert "SUCCESS" in run(promtool, "test", "rules", str(tmp_path / "tests.yml"))


def test_a_users_table_of_xids_and_temperature_make_valid_rules_too(promtool, tmp_path):
    rules = alert_rules(85, xid_table({63: "error", 300: "info"}))
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps(rules_document(rules)))
    assert f"{len(rules)} rules found" in run(promtool, "check", "rules", str(path))
    errors = "|".join(rule.expression for rule in rules if rule.name == "KubegpuXidError")
    assert '{xid=~"63"}' in errors, "63 has an action of its own among the errors"
    assert "GPU_TEMP > 85" in json.dumps(rules_document(rules))


def test_every_expression_of_the_dashboard_is_valid_and_asks_for_what_is_collected(
    promtool: str, tmp_path: Path
) -> None:
    document = dashboard_document(COLLECTED)
    assert len(document["panels"]) == len(PANELS), "no panel is left out by default"
    expressions = [target["expr"] for panel in document["panels"] for target in panel["targets"]]
    made = [
        {"record": f"dashboard:{number}", "expr": re.sub(r"\$(host|instance)", ".*", one)}
        for number, one in enumerate(one.replace("$__rate_interval", "5m") for one in expressions)
    ]
    assert "$" not in json.dumps(made)
    path = tmp_path / "dashboard.yml"
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": made}]}))
    assert f"{len(made)} rules found" in run(promtool, "check", "rules", str(path))


def test_the_collected_metrics_are_valid_to_promtool(promtool):
    lines = []
    for metric in (*DCGM, *TEXTFILE_METRICS):
        if metric.kind in ("gauge", "counter"):
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} gauge",
                      f'{metric.name}{{gpu="0"}} 1']  # fmt: skip
    done = subprocess.run(
        [promtool, "check", "metrics"], input="\n".join([*lines, ""]), capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    # 3: style alone. The names of DCGM are not of Prometheus' style.
    assert done.returncode in (0, 3), done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("error")]


def test_no_number_of_the_table_of_xids_is_without_an_alert():
    rules = [rule for rule in alert_rules() if rule.name.startswith("KubegpuXid")]
    for number in XIDS:
        hits = []
        for rule in rules:
            operator, pattern = re.findall(r'xid(=~|!~)"([^"]*)"', rule.expression)[0]
            if bool(re.fullmatch(pattern, str(number))) == (operator == "=~"):
                hits.append(rule.name)
        assert len(hits) == 1, (number, hits)


def free_port():
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def background(*argv):
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def scrape_config(monitor, targets):
    """Return the configuration that the Prometheus operator makes of a PodMonitor."""
    spec = monitor["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]

    def label(name):
        return f"__meta_kubernetes_pod_label_{re.sub('[^a-zA-Z0-9]', '_', name)}"

    keep = [
        {"action": "keep", "source_labels": [label(name)], "regex": re.escape(value)}
        for name, value in spec["selector"]["matchLabels"].items()
    ]
    return {
        "job_name": "podMonitor/kubegpu",
        "honor_labels": endpoint.get("honorLabels", False),
        "metrics_path": endpoint["path"],
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        # Debian's Prometheus has no kubernetes_sd. The file has the same labels.
        "file_sd_configs": [{"files": [str(targets)]}],
        "relabel_configs": [
            *keep,
            {"action": "keep", "source_labels": ["__meta_kubernetes_pod_container_port_name"],
             "regex": endpoint["port"]},
            {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
            {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
            {"source_labels": [label(spec["jobLabel"])], "target_label": "job"},
        ],
    }  # fmt: skip


def query(address, expression):
    text = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"{address}/api/v1/query?{text}", timeout=10) as answer:
        return json.load(answer)["data"]["result"]


def wait_for(what, seconds=180):
    last = None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            last = what()
        except OSError as error:
            last = error
        else:
            if last:
                return last
        time.sleep(0.5)
    raise AssertionError(f"not within {seconds} seconds; last: {last}")


def discovered(plan, port):
    """Return what Prometheus' own discovery says of a pod of the plan's DaemonSet."""
    (daemonset,) = [one for one in plan["objects"] if one["kind"] == "DaemonSet"]
    (container,) = daemonset["spec"]["template"]["spec"]["containers"]
    labels = {
        f"__meta_kubernetes_pod_label_{re.sub('[^a-zA-Z0-9]', '_', name)}": value
        for name, value in daemonset["spec"]["template"]["metadata"]["labels"].items()
    }
    labels["__meta_kubernetes_namespace"] = daemonset["metadata"]["namespace"]
    labels["__meta_kubernetes_pod_name"] = f"{daemonset['metadata']['name']}-x"
    labels["__meta_kubernetes_pod_container_port_name"] = container["ports"][0]["name"]
    return [{"targets": [f"127.0.0.1:{port}"], "labels": labels}]


def test_s19_prometheus_keeps_the_labels_of_the_pods_that_use_the_gpus(promtool, tmp_path):
    port, listen = free_port(), free_port()
    plan = gpu_monitoring_plan({"scrape": "pod_monitor"}, kinds=["PodMonitor"])
    (monitor,) = [one for one in plan["objects"] if one["kind"] == "PodMonitor"]
    (tmp_path / "targets.json").write_text(json.dumps(discovered(plan, port)))
    (tmp_path / "rules.json").write_text(json.dumps(plan["rules"]))
    config = {
        "global": {"evaluation_interval": "1s"},
        "rule_files": ["rules.json"],
        "scrape_configs": [scrape_config(monitor, tmp_path / "targets.json")],
    }
    (tmp_path / "prometheus.json").write_text(json.dumps(config))
    run(promtool, "check", "config", str(tmp_path / "prometheus.json"))
    address, standin = f"http://127.0.0.1:{listen}", str(HERE / "dcgm_exporter.py")
    with (
        background(sys.executable, standin, str(port), "gpu-a", "2", "team-a/train-0"),
        background(
            str(programs() / "prometheus"), f"--config.file={tmp_path}/prometheus.json",
            f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{listen}",
        ),
    ):  # fmt: skip
        found = wait_for(lambda: query(address, 'DCGM_FI_DEV_GPU_TEMP{gpu="0"}'))
        (sample,) = [one["metric"] for one in found]
        assert (sample["namespace"], sample["pod"]) == ("team-a", "train-0")
        assert sample["job"] == "kubegpu-dcgm" and sample["Hostname"] == "gpu-a"
        assert not [name for name in sample if name.startswith("exported_")]
        # The role's own recording rule sees both GPUs.
        (counted,) = wait_for(lambda: query(address, "kubegpu:gpus:count"))
        assert counted["metric"]["Hostname"] == "gpu-a" and counted["value"][1] == "2"
