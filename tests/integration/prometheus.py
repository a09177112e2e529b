# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real Prometheus on this machine, for tests: Debian's, which scrapes what a test names."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import time
import urllib.parse
import urllib.request

from tests.testbed.prometheus import programs


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
        "metric_relabel_configs": [
            {re.sub("[A-Z]", lambda one: f"_{one[0].lower()}", key): value
             for key, value in one.items()}
            for one in endpoint["metricRelabelings"]
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


def discovered(plan, pods):
    """Return what Prometheus' own discovery says of pods of the plan's DaemonSet.

    :param pods: by name, address and port.
    """
    (daemonset,) = [one for one in plan["objects"] if one["kind"] == "DaemonSet"]
    (container,) = daemonset["spec"]["template"]["spec"]["containers"]
    labels = {
        f"__meta_kubernetes_pod_label_{re.sub('[^a-zA-Z0-9]', '_', name)}": value
        for name, value in daemonset["spec"]["template"]["metadata"]["labels"].items()
    }
    labels["__meta_kubernetes_namespace"] = daemonset["metadata"]["namespace"]
    labels["__meta_kubernetes_pod_container_port_name"] = container["ports"][0]["name"]
    return [
        {"targets": [address], "labels": {**labels, "__meta_kubernetes_pod_name": name}}
        for name, address in pods.items()
    ]


@contextlib.contextmanager
def prometheus(folder, config):
    """Run Prometheus with a configuration; yields its address."""
    listen = free_port()
    argv = [
        str(programs() / "prometheus"), f"--config.file={config}",
        f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{listen}",
    ]  # fmt: skip
    with background(*argv):
        yield f"http://127.0.0.1:{listen}"


def pod_monitor_config(plan, pods, folder):
    """Write what the Prometheus operator makes of the plan's PodMonitor; return the file."""
    (monitor,) = [one for one in plan["objects"] if one["kind"] == "PodMonitor"]
    (folder / "targets.json").write_text(json.dumps(discovered(plan, pods)))
    (folder / "rules.json").write_text(json.dumps(plan["rules"]))
    config = {
        "global": {"evaluation_interval": "1s"},
        "rule_files": ["rules.json"],
        "scrape_configs": [scrape_config(monitor, folder / "targets.json")],
    }
    path = folder / "prometheus.json"
    path.write_text(json.dumps(config))
    return path
