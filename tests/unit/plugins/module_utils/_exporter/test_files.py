# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from plugins.module_utils._exporter.files import image, setup
from plugins.module_utils._exporter.options import read_options
from tests.unit.fixtures.node_facts import node as facts

DROP_IN = "/etc/systemd/system/nvidia-dcgm-exporter.service.d/kubegpu.conf"
CONTAINER = "/etc/systemd/system/kubegpu-dcgm-exporter.service"
SERVICE = "/etc/systemd/system/kubegpu-metrics.service"
DIGEST = "sha256:" + "a" * 64


def made(method, path, **options):
    return setup(method, read_options(options), facts(), ["0000:15:00.0"]).files[path]


def start(text):
    return [line for line in text.splitlines() if line.startswith("ExecStart=")][-1]


def test_exporter_of_the_packages_uses_the_service_of_dcgm():
    text = made("packages", DROP_IN, web_config="/etc/exporter/web.yml", job_mapping_dir="/run/j")
    assert "ExecStart=\n" in text
    assert start(text) == (
        "ExecStart=/usr/bin/dcgm-exporter --collectors /etc/kubegpu/dcgm-counters.csv --address "
        ":9400 --collect-interval 15000 --web-config-file /etc/exporter/web.yml "
        "--hpc-job-mapping-dir /run/j --remote-hostengine-info localhost:5555"
    )


def test_container():
    text = start(made("container", CONTAINER, digest=DIGEST, web_config="/etc/exporter/web.yml"))
    assert "--gpus all --cap-add SYS_ADMIN --network host" in text
    assert "--volume /etc/exporter:/etc/exporter:ro" in text
    assert f"/k8s/dcgm-exporter@{DIGEST} --collectors" in text
    assert "SYS_ADMIN" not in made("container", CONTAINER, profiling=False)


def test_image():
    expected = "local:5000/dcgm-exporter:4.5.3-4.8.2-distroless"
    assert image(read_options({"image": "local:5000/dcgm-exporter", "version": "4.5.3-4.8.2"})) == (
        expected
    )


def test_textfile_program_may_write_its_folder_only():
    text = made("textfile", SERVICE, textfile_directory="/srv/textfiles/")
    assert "--output /srv/textfiles/kubegpu.prom " in text
    assert "ReadWritePaths=/srv/textfiles\n" in text
    assert "ProtectSystem=strict\n" in text
    assert "--gpu 0000:15:00.0\n" in text
    assert "--nvidia-smi nvidia-smi" in text


def test_without_a_card_of_nvidia_its_program_is_not_asked():
    node = facts()
    node["gpus"][0]["vendor"] = "amd"
    text = setup("textfile", read_options({"textfile_directory": "/srv"}), node, []).files[SERVICE]
    assert "nvidia-smi" not in text


def test_program_is_sent_as_it_is():
    path = "/usr/local/lib/kubegpu/metrics.py"
    text = setup("textfile", read_options({"textfile_directory": "/srv"}), facts(), []).files[path]
    compile(text, path, "exec")
    assert text.endswith("raise SystemExit(status)\n")
