# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from plugins.module_utils._core.errors import KubegpuError, RolledBackError
from plugins.module_utils._host.command import Result
from plugins.module_utils._prometheus.apply import Dependencies, apply
from plugins.module_utils._prometheus.options import Request
from plugins.module_utils._record.store import StateStore

CONFIG = "global:\n  x: 1\nscrape_configs:\n  - job_name: own\n    password: hunter2\n"
RULES = "groups: []\n"
HOST = {"host": "gpu1", "targets": ["10.0.0.1:9400"], "gpus": 4}


class Prometheus:
    """A host with Prometheus, below a folder. ``refuse`` is what promtool refuses."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "prometheus.yml").write_text(CONFIG)
        self.commands: list[str] = []
        self.warnings: list[str] = []
        self.refuse = ""
        self.reload = 0
        self.active = "active"

    def run(self, argv, timeout=60, environment=None):
        self.commands.append(" ".join(argv[:3]))
        if argv[0] == "promtool":
            if self.refuse == "missing":
                return Result(127, "", "")
            bad = self.refuse and self.refuse in Path(argv[3]).read_text()
            return Result(1, f"{argv[3]}: bad", "") if bad else Result(0, "", "")
        if argv[1] == "show":
            return Result(0, f"LoadState=loaded\nActiveState={self.active}\nMainPID=0\n", "")
        return Result(self.reload if argv[1] == "reload" else 0, "", "")

    def request(self, **options):
        return Request(
            **{
                "hosts": [HOST],
                "rules": RULES,
                "config": f"{self.root}/prometheus.yml",
                "rules_file": f"{self.root}/rules/kubegpu.yml",
                "targets_file": f"{self.root}/file_sd/kubegpu.yml",
                **options,
            }
        )

    def apply(self, check_mode=False, absent=False, **options):
        store = StateStore(f"{self.root}/state/state.json")
        node = Dependencies(self.run, store, self.warnings.append)
        return apply(self.request(**options), node, check_mode, absent)

    def files(self):
        return sorted(
            str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()
        )

    @property
    def reloads(self):
        return self.commands.count("systemctl reload prometheus")


ALL = ["file_sd/kubegpu.yml", "prometheus.yml", "rules/kubegpu-expected.yml", "rules/kubegpu.yml"]


@pytest.fixture
def host(tmp_path):
    return Prometheus(tmp_path)


def test_write_again_and_remove(host):
    predicted = host.apply(check_mode=True)
    assert host.files() == ["prometheus.yml"]
    assert predicted["changed"]
    assert "systemctl reload prometheus" not in host.commands
    result = host.apply()
    assert result == predicted
    assert [file for file in host.files() if not file.startswith("state")] == ALL
    assert host.reloads == 1
    assert "hunter2" not in str(result["diff"])
    config = yaml.safe_load((host.root / "prometheus.yml").read_text())
    assert [one["job_name"] for one in config["scrape_configs"]] == ["kubegpu", "own"]
    host.commands.clear()
    again = host.apply()
    assert not again["changed"]
    assert again["diff"] == []
    assert host.commands == []
    gone = {"hosts": [{"host": "gpu1", "targets": []}]}
    assert host.apply(check_mode=True, **gone)["changed"]
    assert host.apply(**gone)["changed"]
    assert host.reloads == 1
    assert host.files() == ["prometheus.yml"]
    assert (host.root / "prometheus.yml").read_text() == CONFIG
    assert not host.apply(**gone)["changed"]


def test_targets_alone_need_no_reload(host):
    host.apply()
    other = {"host": "gpu2", "targets": ["10.0.0.2:9100"]}
    result = host.apply(hosts=[other])
    assert result["hosts"] == ["gpu1", "gpu2"]
    assert host.reloads == 1


@pytest.mark.parametrize("check_mode", [True, False])
def test_rules_that_promtool_refuses_are_not_written(host, check_mode):
    host.apply()
    host.refuse = "broken"
    with pytest.raises(KubegpuError, match=r"promtool refuses .*kubegpu.yml") as error:
        host.apply(check_mode=check_mode, rules="groups: broken\n")
    assert "the new file: bad" in error.value.evidence
    assert (host.root / "rules/kubegpu.yml").read_text() == RULES
    assert host.reloads == 1


def test_config_that_promtool_refuses_is_put_back(host):
    host.refuse = "job_name: kubegpu"
    with pytest.raises(KubegpuError, match="with the new files"):
        host.apply()
    assert host.files() == ["prometheus.yml"]
    assert (host.root / "prometheus.yml").read_text() == CONFIG
    assert host.reloads == 0


def test_reload_that_fails_puts_all_back(host):
    host.reload = 1
    with pytest.raises(RolledBackError):
        host.apply()
    assert host.files() == ["prometheus.yml"]
    assert (host.root / "prometheus.yml").read_text() == CONFIG


def test_without_promtool_nothing_is_written(host):
    host.refuse = "missing"
    with pytest.raises(KubegpuError, match="promtool is not on this host"):
        host.apply()
    assert host.files() == ["prometheus.yml"]


def test_without_prometheus(host):
    (host.root / "prometheus.yml").unlink()
    with pytest.raises(KubegpuError, match="does not exist"):
        host.apply()


def test_prometheus_that_does_not_run_is_not_reloaded(host):
    host.active = "inactive"
    assert host.apply()["changed"]
    assert host.reloads == 0
    assert "was not reloaded" in host.warnings[0]


def test_config_that_is_not_managed(host):
    assert host.apply(manage_config=False)["changed"]
    assert (host.root / "prometheus.yml").read_text() == CONFIG
    assert "does not name" in host.warnings[0]


def test_lines_of_others_written_since_stay(host):
    host.apply()
    path = host.root / "prometheus.yml"
    path.write_text(path.read_text() + "# added\n")
    host.apply(absent=True)
    assert path.read_text() == CONFIG + "# added\n"
