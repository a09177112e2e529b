# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's promtool judges the rules, and fires each alert on made samples."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._exporter.data import (
    TEXTFILE_DIRECTORIES,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.xids import (
    XIDS,
    xid_table,
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
from ansible_collections.kubegpu.nodes.plugins.module_utils._prometheus.apply import (
    Dependencies,
    apply,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._prometheus.config import add_lines
from ansible_collections.kubegpu.nodes.plugins.module_utils._prometheus.options import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._prometheus.targets import (
    merge,
    targets_text,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from tests.integration.engines.alert_cases import CASES, Case
from tests.integration.prometheus import (
    background,
    free_port,
    pod_monitor_config,
    prometheus,
    query,
    wait_for,
)
from tests.testbed.paths import HERE, REPOSITORY
from tests.testbed.prometheus import programs
from tests.unit.fixtures.plans import gpu_monitoring_plan

pytestmark = pytest.mark.full(why="Debian's Prometheus is downloaded")

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


@pytest.mark.parametrize("alert", sorted({case.alert for case in CASES.values()}))
def test_an_alert_fires_when_it_should_and_not_when_it_should_not(promtool, tmp_path, alert):
    # The other alerts would cost most of the time.
    rules = [rule for rule in alert_rules() if rule.record or rule.name == alert]
    (tmp_path / "rules.yml").write_text(json.dumps(rules_document(rules, {"team": "gpu"})))
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
        if case.alert == alert
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
    assert '{xid=~"63"}' in errors, "63 has its own action among the errors"
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


def test_s19_prometheus_keeps_the_labels_of_the_pods_that_use_the_gpus(promtool, tmp_path):
    port = free_port()
    plan = gpu_monitoring_plan({"scrape": "pod_monitor"}, kinds=["PodMonitor"])
    pods = {"kubegpu-dcgm-exporter-x": f"127.0.0.1:{port}"}
    config = pod_monitor_config(plan, pods, tmp_path)
    run(promtool, "check", "config", str(config))
    standin = str(HERE / "dcgm_exporter.py")
    with (
        background(sys.executable, standin, str(port), "gpu-a", "2", "team-a/train-0"),
        prometheus(tmp_path, config) as address,
    ):
        found = wait_for(lambda: query(address, 'DCGM_FI_DEV_GPU_TEMP{gpu="0"}'))
        (sample,) = [one["metric"] for one in found]
        assert (sample["namespace"], sample["pod"]) == ("team-a", "train-0")
        assert sample["job"] == "kubegpu-dcgm" and sample["hostname"] == "gpu-a"
        assert not [name for name in sample if name.startswith("exported_")]
        # A GPU that no pod uses is not one of the exporter's own pod.
        (idle,) = wait_for(lambda: query(address, 'DCGM_FI_DEV_GPU_TEMP{gpu="1"}'))
        assert not {"pod", "namespace", "container"} & set(idle["metric"])
        # The pod of the target itself is known.
        (target,) = query(address, "up")
        assert target["metric"]["pod"] == "kubegpu-dcgm-exporter-x"
        # The role's own recording rule sees both GPUs.
        (counted,) = wait_for(lambda: query(address, "kubegpu:gpus:count"))
        assert counted["metric"]["hostname"] == "gpu-a" and counted["value"][1] == "2"


def test_an_exporter_before_4_8_3_has_its_node_as_a_newer_one(promtool, tmp_path):
    port = free_port()
    page = tmp_path / "metrics"
    page.write_text('DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="gpu-a"} 40\n')
    (tmp_path / "targets.yml").write_text(
        targets_text(merge((), [{"host": "gpu-a", "targets": [f"127.0.0.1:{port}"]}]))
    )
    config, _reasons = add_lines(
        "global: {scrape_interval: 1s}\n", str(tmp_path / "prometheus.yml"), [],
        str(tmp_path / "targets.yml"), "kubegpu",
    )  # fmt: skip
    (tmp_path / "prometheus.yml").write_text(config)
    run(promtool, "check", "config", str(tmp_path / "prometheus.yml"))
    with (
        background(sys.executable, "-m", "http.server", str(port), "--directory", str(tmp_path)),
        prometheus(tmp_path, tmp_path / "prometheus.yml") as address,
    ):
        (found,) = wait_for(lambda: query(address, "DCGM_FI_DEV_GPU_TEMP"))
        assert found["metric"]["hostname"] == "gpu-a"


PAGE = REPOSITORY / "docs" / "monitoring-hosts.md"


def _written_by_the_role(variables: dict[str, Any]) -> str:
    """Return prometheus.yml as prometheus.prometheus.prometheus 0.30 has it made."""
    document: dict[str, Any] = {
        "global": {
            "scrape_interval": "1s",
            "evaluation_interval": "1s",
            "external_labels": {"environment": "prometheus1"},
        }
    }
    if variables["prometheus_alert_rules_files"]:
        document["rule_files"] = ["/etc/prometheus/rules/*.yml", "/etc/prometheus/rules/*.yaml"]
    document["scrape_configs"] = variables["prometheus_scrape_configs"]
    return yaml.safe_dump(document, sort_keys=False)


class _Host:
    """A host with the role's Prometheus: its /etc/prometheus is a folder, promtool is real."""

    def __init__(self, folder: Path, promtool: str, variables: dict[str, Any]) -> None:
        self.folder = folder
        self.promtool = promtool
        self.variables = variables
        self.warnings: list[str] = []
        # The role makes them.
        for name in ("rules", "file_sd"):
            (folder / name).mkdir(parents=True)
        self.config = folder / "prometheus.yml"
        text = _written_by_the_role(variables)
        self.config.write_text(text.replace("/etc/prometheus/", f"{folder}/"))

    def run(self, argv: list[str], timeout: int = 60, environment: Any = None) -> Result:
        if argv[0] != "promtool":
            return Result(0, "LoadState=loaded\nActiveState=active\nMainPID=0\n", "")
        done = subprocess.run(
            [self.promtool, *argv[1:]],
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    def apply(self, target: str) -> dict[str, Any]:
        """Run the module with its default paths, and what the page sets."""
        default = Request()
        paths = {
            name: getattr(default, name).replace("/etc/prometheus/", f"{self.folder}/")
            for name in ("config", "rules_file", "targets_file")
        }
        request = Request(
            hosts=[{"host": "gpu-a", "targets": [target], "gpus": 1}],
            rules=json.dumps(rules_document(alert_rules())),
            manage_config=self.variables["gpu_monitoring_prometheus_manage_config"],
            **paths,
        )
        store = StateStore(str(self.folder / "state.json"))
        return apply(request, Dependencies(self.run, store, self.warnings.append), False)


@pytest.fixture(scope="module")
def page_variables() -> dict[str, Any]:
    """What the page shows for the roles of prometheus.prometheus."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (found,) = [block for block in blocks if "prometheus_scrape_configs" in block]
    return dict(yaml.safe_load(found))


def test_s19_the_pages_variables_for_prometheus_prometheus_load_the_files_of_the_module(
    promtool, tmp_path, page_variables
):
    port = free_port()
    host = _Host(tmp_path / "etc", promtool, page_variables)
    before = host.config.read_text()
    assert host.apply(f"127.0.0.1:{port}")["changed"]
    # Each file is named already, and the role's own one is not edited.
    assert host.warnings == [] and host.config.read_text() == before
    assert "SUCCESS: 2 rule files found" in run(promtool, "check", "config", str(host.config))
    assert not host.apply(f"127.0.0.1:{port}")["changed"]

    served = tmp_path / "served"
    served.mkdir()
    # An exporter before 4.8.3, whose own labels are those of a pod.
    sample = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="gpu-a",instance="mine"} 40\n'
    (served / "metrics").write_text(sample)
    serve = (sys.executable, "-m", "http.server", str(port), "--directory", str(served))
    with background(*serve), prometheus(tmp_path, host.config) as address:
        (found,) = wait_for(lambda: query(address, "DCGM_FI_DEV_GPU_TEMP"))
        labels = found["metric"]
        assert (labels["hostname"], labels["instance"]) == ("gpu-a", "mine")
        # The rules of the module's files: the GPUs that are there, and those that have to be.
        assert wait_for(lambda: query(address, "kubegpu:gpus:count"))
        (expected,) = wait_for(lambda: query(address, "kubegpu_gpus_expected"))
        assert expected["value"][1] == "1"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"prometheus_alert_rules_files": []}, "/rules/kubegpu.yml"),
        ({"prometheus_scrape_configs": []}, "/file_sd/kubegpu.yml"),
    ],
)
def test_what_the_page_sets_is_needed(promtool, tmp_path, page_variables, changed, said):
    host = _Host(tmp_path / "etc", promtool, {**page_variables, **changed})
    host.apply("127.0.0.1:9400")
    (warning,) = host.warnings
    assert f"does not name {tmp_path}/etc{said}" in warning


def test_the_folder_of_text_files_on_the_page_is_one_that_is_found(page_variables):
    assert page_variables["node_exporter_textfile_dir"] in TEXTFILE_DIRECTORIES
