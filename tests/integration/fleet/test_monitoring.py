# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Scenario S19 on hosts: Debian's Prometheus and node_exporter, and a stand-in of DCGM's exporter.

gpu1 has a card of which nvidia-smi (a stand-in) alone tells, gpu2 four cards and DCGM's packages,
or the exporter's image in its real Docker, and cpu1 Prometheus.
"""

from __future__ import annotations

import json
import time
import urllib.parse

import pytest

from tests.integration.fleet.playbooks import ETC, on_nodes, play, run_module
from tests.testbed.monitoring import NODE_EXPORTER, PROMETHEUS, install, purge
from tests.testbed.nodes import execute

pytestmark = pytest.mark.full(why="Prometheus, and packages of another repository")

HOSTS = "gpu1:gpu2:cpu1"
LIMIT = ("--limit", HOSTS.replace(":", ","))
RULES = "/etc/prometheus/rules/kubegpu.yml"
CONFIG = "/etc/prometheus/prometheus.yml"
# Debian's file, but for the seconds.
PROMETHEUS_YML = """\
global:
  scrape_interval: 1s
  evaluation_interval: 1s

rule_files:
  # - "first_rules.yml"

scrape_configs:
  - job_name: 'prometheus'
    static_configs:
      - targets: ['localhost:9090']
"""
# Prints the one card while it is on the bus, in the form of the real program.
NVIDIA_SMI = """\
#!/bin/sh
# A stand-in of the test bed.
[ -e /sys/bus/pci/devices/0000:00:08.0 ] || { echo "No devices were found"; exit 6; }
echo "0, GPU-1, 00000000:00:08.0, 535.1, 44, 5, 100, 7680, 23.5, 75.00, 1531, 3003, [N/A], 3, 16,\
 [N/A], [N/A], [N/A], [N/A], Not Active, Not Active, Not Active, Tesla P4"
"""
VARIABLES = {
    "gpu_monitoring_enabled": True,
    "gpu_monitoring_interval": 5,
    "gpu_monitoring_method": "{{ {'gpu1': 'textfile', 'gpu2': 'packages'}"
    ".get(inventory_hostname, 'auto') }}",
    "gpu_monitoring_prometheus_host": "cpu1",
    "gpu_monitoring_repository": {
        "url": "{{ nvidia_container_toolkit_repository.url }}/amd64",
        "key_url": "{{ nvidia_container_toolkit_repository.key_url }}",
        "key_fingerprints": "{{ nvidia_container_toolkit_repository.key_fingerprints }}",
    },
}
# The exporter's image: busybox with a stand-in that serves the counters of its file.
BUSYBOX = "localhost/testbed/busybox:1"
IMAGE = "localhost/testbed/dcgm-exporter-standin"
IMAGE_PROGRAM = """\
while [ $# -gt 0 ]; do
    case $1 in --collectors) file=$2 ;; --address) address=$2 ;; esac
    shift
done
mkdir /www
host=$(busybox hostname)
for field in $(busybox sed -n 's/^\\(DCGM_FI_DEV_[A-Z_]*\\),.*/\\1/p' "$file"); do
    for number in 0 1 2 3; do
        echo "$field{gpu=\\"$number\\",UUID=\\"GPU-$number\\",hostname=\\"$host\\"} 40"
    done
done > /www/metrics
exec busybox httpd -f -p "${address#:}" -h /www
"""
MAKE_IMAGE = (
    f"docker run --interactive --name mould {BUSYBOX} sh -c 'cat > /exporter.sh' && docker commit "
    f'--change \'ENTRYPOINT ["/bin/sh", "/exporter.sh"]\' mould {IMAGE}:4.6.1-4.8.4-distroless; '
    "docker rm mould"
)
CONTAINERS = "docker ps --all --quiet --filter name=kubegpu-dcgm-exporter"
# dockerd looks for the hook of --gpus once, when it starts.
HOOK = "/usr/local/bin/nvidia-container-runtime-hook"
HOOK_THERE = f"printf '#!/bin/sh\\nexit 0\\n' > {HOOK}; chmod 755 {HOOK}; systemctl restart docker"
HOOK_GONE = f"rm -f {HOOK}; docker rmi {IMAGE}:4.6.1-4.8.4-distroless; systemctl restart docker"
# Where the collection has been: all of it is gone after the teardown.
LEFT = (
    "ls -d /usr/local/lib/kubegpu /etc/kubegpu /run/kubegpu-metrics /var/lib/kubegpu "
    "/var/lib/prometheus/node-exporter/kubegpu.prom 2>/dev/null; "
    "systemctl list-unit-files --no-legend 'kubegpu-metrics*' 'kubegpu-dcgm*' 'nvidia-dcgm*'; "
    "dpkg-query -W -f '${Package} ${db:Status-Status}\\n' 'datacenter-gpu-manager*' 2>/dev/null "
    "| grep ' installed'; true"
)
# dpkg keeps the settings of a package that is removed and not purged.
KEPT = "! -path 'etc/dcgm-exporter*' "


def etc():
    return on_nodes(ETC.replace("! -name ld.so.cache ", f"! -name ld.so.cache {KEPT}"), HOSTS)


def site(*arguments, **variables):
    options = ("--tags", "monitoring", *LIMIT, *arguments)
    return play("site", *options, variables={**VARIABLES, **variables})


def ask(node, path):
    """Return what the API of Prometheus answers."""
    script = (
        "import sys, urllib.request; "
        "print(urllib.request.urlopen('http://127.0.0.1:9090' + sys.argv[1], timeout=10)"
        ".read().decode())"
    )
    answer = execute(node, "python3", "-c", script, path, check=False)
    return json.loads(answer)["data"] if answer.strip() else {}


def value(node, query):
    """Return the value of a query for one series; None without any."""
    found = ask(node, f"/api/v1/query?query={urllib.parse.quote(query)}").get("result", [])
    return float(found[0]["value"][1]) if len(found) == 1 else None


def wait_for(look, wanted, seconds=90):
    deadline = time.monotonic() + seconds
    while (found := look()) != wanted:
        assert time.monotonic() < deadline, f"{found!r} is not {wanted!r}"
        time.sleep(0.3)


def lost(node):
    """Return the states of the alert about lost GPUs, by host."""
    return sorted(
        alert["state"]
        for alert in ask(node, "/api/v1/alerts").get("alerts", [])
        if alert["labels"]["alertname"] == "KubegpuGpuLost"
    )


def metrics(pattern):
    """Return the layer metrics of the hosts, as the verification finds it."""
    options = {"layers": ["pci"], "container": False, "metrics": True}
    answers = run_module(pattern, "kubegpu.nodes.gpu_node_verify", options)
    return {host: answer["layers"][-1] for host, answer in answers.items()}


@pytest.fixture
def hosts(fleet):
    found = {node.name: node for node in fleet if node.name in HOSTS.split(":")}
    gpu1, prometheus = found["gpu1"], found["cpu1"]
    # Lists that a test before has left tell of an optional package only once their entry is there
    # again: check mode, which adds no entry, cannot know it.
    execute(found["gpu2"], "sh", "-c", "rm -f /var/lib/apt/lists/*_Packages*")
    install(gpu1, NODE_EXPORTER)
    install(prometheus, PROMETHEUS)
    execute(gpu1, "tee", "/usr/bin/nvidia-smi", stdin=NVIDIA_SMI)
    execute(gpu1, "chmod", "755", "/usr/bin/nvidia-smi")
    execute(prometheus, "tee", CONFIG, stdin=PROMETHEUS_YML)
    execute(prometheus, "systemctl", "reload-or-restart", "prometheus")
    yield found
    play("teardown", *LIMIT, variables=VARIABLES)
    execute(gpu1, "rm", "-f", "/usr/bin/nvidia-smi")
    purge(gpu1, NODE_EXPORTER)
    purge(prometheus, PROMETHEUS)


def test_s19_hosts_are_scraped_and_a_lost_card_is_an_alert(hosts, count_calls):
    prometheus = hosts["cpu1"]
    before = etc()
    predicted = site("--check", "--diff")
    assert predicted.status == 0, predicted.output
    assert etc() == before
    run = site("--diff")
    assert run.status == 0, run.output
    assert run.changed() == predicted.changed()

    wait_for(lambda: value(prometheus, "count(DCGM_FI_DEV_GPU_TEMP)"), 4.0)
    wait_for(lambda: value(prometheus, "count(kubegpu_gpu_temperature_celsius)"), 1.0)
    assert value(prometheus, "sum(kubegpu_gpus_expected)") == 5.0
    assert value(prometheus, "kubegpu_textfile_source_up{source='nvidia-smi'}") == 1.0
    assert value(prometheus, "count(up==1)") == 3.0

    found = metrics("gpu1:gpu2")
    assert {host: one["ok"] for host, one in found.items()} == {"gpu1": True, "gpu2": True}, found
    assert found["gpu2"]["proof"] == "http://127.0.0.1:9400/metrics has samples of 4 GPUs"
    assert found["gpu1"]["proof"].endswith("/kubegpu.prom has samples of 1 GPU")

    with count_calls() as calls:
        again = site()
    assert {host: numbers["changed"] for host, numbers in again.stats.items()} == dict.fromkeys(
        HOSTS.split(":"), 0
    )
    assert {host: n for host, n in calls.items() if n} == {"gpu1": 1, "gpu2": 1, "cpu1": 2}

    # So that nobody waits for five minutes here; both alerts are pending at the same time.
    script = f"sed -i 's/for: 5m/for: 30s/' {RULES} && systemctl reload prometheus"
    execute(prometheus, "sh", "-c", script)
    assert lost(prometheus) == []
    for name, address in (("gpu1", "0000:00:08.0"), ("gpu2", "0000:3a:00.0")):
        execute(hosts[name], "mv", f"/opt/standin/pci/{address}", "/root/lost-card")
    wait_for(lambda: lost(prometheus), ["pending", "pending"])
    wait_for(lambda: lost(prometheus), ["firing", "firing"])
    found = metrics("gpu1:gpu2")
    assert {one["code"] for one in found.values()} == {"gpu_without_metrics"}, found
    assert found["gpu1"]["evidence"] == "missing: 0000:00:08.0"
    warned = site("--check")
    assert "The node had a GPU at 0000:00:08.0, which is not on the PCI bus" in warned.output
    for name, address in (("gpu1", "0000:00:08.0"), ("gpu2", "0000:3a:00.0")):
        execute(hosts[name], "mv", "/root/lost-card", f"/opt/standin/pci/{address}")
    wait_for(lambda: lost(prometheus), [])

    torn = play("teardown", *LIMIT, variables=VARIABLES)
    assert torn.status == 0, torn.output
    assert etc() == before
    assert not any(on_nodes(LEFT, HOSTS).values())
    # A query would still find the last samples of targets that are gone.
    wait_for(lambda: len(ask(prometheus, "/api/v1/targets").get("activeTargets", ())), 1)
    assert play("teardown", *LIMIT, variables=VARIABLES).changed() == {}


def test_s19_prometheus_refuses_broken_rules_and_keeps_the_old_ones(hosts):
    prometheus = hosts["cpu1"]
    assert site().status == 0
    before = execute(prometheus, "cat", RULES, CONFIG)
    module = "kubegpu.nodes.prometheus_gpu_files"
    broken = "groups: [{name: a, rules: [{alert: b, expr: 'up =='}]}]"
    for check in ((), ("--check",)):
        answer = run_module("cpu1", module, {"rules": broken}, *check)["cpu1"]
        assert f"promtool refuses {RULES}" in answer["msg"]
        assert "parse error" in answer["msg"]
    # Another's file, which Prometheus would not load with ours.
    execute(prometheus, "sh", "-c", f"echo 'broken: [' >> {CONFIG}")
    bad = execute(prometheus, "cat", RULES, CONFIG)
    answer = run_module("cpu1", module, {"rules": "groups: []"})["cpu1"]
    assert f"promtool refuses {CONFIG}" in answer["msg"]
    assert execute(prometheus, "cat", RULES, CONFIG) == bad
    execute(prometheus, "sed", "-i", "$d", CONFIG)
    assert execute(prometheus, "cat", RULES, CONFIG) == before
    assert ask(prometheus, "/api/v1/rules")["groups"]


def test_s19_docker_runs_the_exporters_image_and_the_packages_take_its_place(hosts):
    node, prometheus = hosts["gpu2"], hosts["cpu1"]
    image = {"gpu_monitoring_method": "container", "gpu_monitoring_image": IMAGE}
    only = ("--limit", "gpu2,cpu1")
    execute(node, "sh", "-c", HOOK_THERE)
    execute(node, "sh", "-c", MAKE_IMAGE, stdin=IMAGE_PROGRAM)
    try:
        before = etc()
        predicted = site(*only, "--check", "--diff", **image)
        assert etc() == before
        run = site(*only, "--diff", **image)
        assert (predicted.status, run.status) == (0, 0), run.output
        assert run.changed() == predicted.changed() != {}
        assert len(execute(node, "sh", "-c", CONTAINERS).split()) == 1
        wait_for(lambda: value(prometheus, "count(DCGM_FI_DEV_GPU_TEMP)"), 4.0)
        # By --network host the container has the host's name.
        (series,) = {
            one["metric"]["hostname"]
            for one in ask(prometheus, "/api/v1/query?query=DCGM_FI_DEV_GPU_TEMP")["result"]
        }
        assert series == execute(node, "hostname").strip()
        found = metrics("gpu2")["gpu2"]
        assert found["proof"] == "http://127.0.0.1:9400/metrics has samples of 4 GPUs", found
        assert site(*only, **image).changed() == {}

        execute(node, "systemctl", "restart", "docker")
        wait_for(lambda: metrics("gpu2")["gpu2"]["ok"], True)

        # DCGM's packages in its place, on the same port.
        run = site(*only)
        assert run.status == 0, run.output
        assert execute(node, "sh", "-c", CONTAINERS).split() == []
        wait_for(lambda: value(prometheus, "count(DCGM_FI_DEV_POWER_USAGE == 71.204)"), 4.0)
        assert play("teardown", *only, variables=VARIABLES).status == 0
        assert etc() == before
    finally:
        execute(node, "sh", "-c", HOOK_GONE, check=False)


def test_s19_exporter_of_somebody_else_is_named_and_left_alone(hosts):
    node = hosts["gpu2"]
    script = "systemd-run --unit somebodys-exporter python3 -m http.server 9400"
    execute(node, "sh", "-c", script)
    wait_for(lambda: execute(node, "sh", "-c", "grep -c :24B8 /proc/net/tcp || true").strip(), "1")
    try:
        run = site("--limit", "gpu2")
        assert run.status == 0, run.output
        assert run.changed() == {}
        assert "port 9400: python3 (pid " in run.output
        assert "left alone" in run.output
    finally:
        execute(node, "systemctl", "stop", "somebodys-exporter")


def test_s19_a_prometheus_that_cannot_be_changed_keeps_no_other_host_from_its_teardown(hosts):
    prometheus = hosts["cpu1"]
    assert site().status == 0
    # An error of another party.
    execute(prometheus, "sh", "-c", f"echo 'broken: [' >> {CONFIG}")
    try:
        changed = site(gpu_monitoring_temperature=80)
        torn = play("teardown", *LIMIT, variables=VARIABLES)
    finally:
        execute(prometheus, "sed", "-i", "$d", CONFIG)
    for run in (changed, torn):
        assert run.status != 0
        assert "cpu1 failed in the task Give Prometheus the targets and rules" in run.output
        assert f"promtool refuses {CONFIG}" in run.output
    assert not any(on_nodes(LEFT, "gpu1:gpu2").values())
    again = play("teardown", *LIMIT, variables=VARIABLES)
    assert again.status == 0, again.output
    wait_for(lambda: len(ask(prometheus, "/api/v1/targets").get("activeTargets", ())), 1)
