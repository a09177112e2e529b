# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the playbook diagnose on the real cluster, and read its result."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.fleet.playbooks import Run, play
from tests.testbed.paths import BUILD

SEEN = BUILD / "seen"


def diagnose(name: str, *arguments: str, **variables: Any) -> tuple[Run, dict[str, Any]]:
    """Run the playbook, which must change nothing; what the user saw is kept."""
    dest = BUILD / f"diagnosis-{name}.json"
    dest.unlink(missing_ok=True)
    run = play("diagnose", *arguments, variables={"gpu_diagnose_file": str(dest), **variables})
    SEEN.mkdir(exist_ok=True)
    shown = run.screen.strip()
    (SEEN / f"diagnose-{name}.txt").write_text(f"{shown}\n", encoding="utf-8")
    assert {host: one["changed"] for host, one in run.stats.items()} == dict.fromkeys(run.stats, 0)
    assert dest.exists(), run.output
    return run, json.loads(dest.read_text(encoding="utf-8"))


def errors(result: dict[str, Any]) -> dict[str, list[str]]:
    """Return the root causes that are errors, by host, or by pod where it has none."""
    found: dict[str, list[str]] = {}
    for one in result["findings"]:
        if one["severity"] == "error":
            found.setdefault(one["host"] or one["pod"], []).append(one["id"])
    return found
