# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import yaml

from plugins.module_utils._core.errors import KubegpuError
from plugins.module_utils._prometheus.config import add_lines, without_lines

PATH = "/etc/prometheus/prometheus.yml"
RULES = "/etc/prometheus/rules/kubegpu.yml"
TARGETS = "/etc/prometheus/file_sd/kubegpu.yml"
# Debian's.
DEBIAN = """\
global:
  scrape_interval:     15s # a comment

alerting:
  alertmanagers:
  - static_configs:
    - targets: ['localhost:9093']

rule_files:
  # - "first_rules.yml"

scrape_configs:
  # The job name
  - job_name: 'prometheus'
    static_configs:
      - targets: ['localhost:9090']
"""
# What the role of prometheus.prometheus writes with docs/monitoring.md's variables.
ROLE = """\
rule_files:
  - /etc/prometheus/rules/*.yml
  - /etc/prometheus/rules/*.rules

scrape_configs:
  - file_sd_configs:
    - files:
      - /etc/prometheus/file_sd/kubegpu.yml
    job_name: kubegpu
"""
FLUSH = """\
scrape_configs:
- job_name: prometheus
  static_configs:
  - targets: ['localhost:9090']
rule_files:
- own.yml
"""


def added(text):
    return add_lines(text, PATH, [RULES], TARGETS, "kubegpu")


@pytest.mark.parametrize("text", [DEBIAN, FLUSH, "", "global: {}", DEBIAN.rstrip("\n")])
def test_lines_are_added_once_and_taken_out(text):
    new, reasons = added(text)
    assert reasons == (f"{PATH} does not name {RULES}", f"{PATH} does not name {TARGETS}")
    data = yaml.safe_load(new)
    assert RULES in data["rule_files"]
    jobs = [one for one in data["scrape_configs"] if one["job_name"] == "kubegpu"]
    relabel = {"source_labels": ["Hostname"], "regex": "(.+)", "target_label": "hostname"}
    assert jobs == [
        {
            "job_name": "kubegpu",
            "honor_labels": True,
            "file_sd_configs": [{"files": [TARGETS]}],
            "metric_relabel_configs": [relabel],
        }
    ]
    before = yaml.safe_load(text) or {}
    for one in before.get("scrape_configs", ()):
        assert one in data["scrape_configs"]
    assert {key: data[key] for key in before if key not in ("rule_files", "scrape_configs")} == {
        key: before[key] for key in before if key not in ("rule_files", "scrape_configs")
    }
    assert added(new) == (new, ())
    assert without_lines(new).rstrip("\n") == text.rstrip("\n")


def test_nothing_is_added_where_other_lines_name_the_files():
    assert added(ROLE) == (ROLE, ())


@pytest.mark.parametrize(
    "pattern", ["rules/*.yml", "'rules/kubegpu.yml'", '"/etc/prometheus/rules/*"']
)
def test_relative_names_and_patterns(pattern):
    text = f"rule_files:\n  - {pattern}\nscrape_configs:\n  - job_name: a\n"
    assert added(text)[1] == (f"{PATH} does not name {TARGETS}",)


@pytest.mark.parametrize(
    "text",
    [
        "rule_files:\n  - '*.yml'\nscrape_configs:\n",
        "rule_files: [/etc/*/*.yml]\nscrape_configs:\n",
        # A pattern for targets is none for rules.
        "scrape_configs:\n  - file_sd_configs:\n    - files: [/etc/prometheus/*/*.yml]\n",
    ],
)
def test_a_pattern_that_prometheus_would_not_match_does_not_count(text):
    missing = f"{PATH} does not name {RULES}"
    if "[/etc/*/*" in text:
        with pytest.raises(KubegpuError, match="rule_files"):
            added(text)
    else:
        assert missing in added(text)[1]


def test_a_line_of_somebody_who_names_the_collection_stays():
    text = "scrape_configs:\n  - job_name: mine  # kubegpu.nodes are read here\n"
    assert "job_name: mine" in added(text)[0]
    assert without_lines(text) == text


def test_a_name_in_a_comment_does_not_count():
    text = DEBIAN.replace("first_rules.yml", RULES)
    assert f"{PATH} does not name {RULES}" in added(text)[1]


def test_a_list_on_one_line_is_refused_with_the_lines():
    with pytest.raises(KubegpuError, match="scrape_configs") as error:
        added("rule_files:\nscrape_configs: []\n")
    assert "job_name: kubegpu" in error.value.next_step
    assert "line 3" in error.value.evidence
