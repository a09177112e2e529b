# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which groups ``kubegpu.nodes.groups`` makes of hosts, by Ansible itself."""

from __future__ import annotations

import json

from tests.integration.plans import machines, playbook
from tests.unit.fixtures.machines import MACHINES


def test_a_variable_that_is_defined_later_does_not_end_the_run(tmp_path):
    variables = {
        "p4": {"gpu_monitoring_enabled": "{{ later }}", "kubegpu_report_dir": "{{ later }}"},
        "v100": {"kubegpu_report_dir": "{{ undefined | default('') }}"},
    }
    own = {"p4": MACHINES["p4"], "v100": MACHINES["v100x4"]}
    show = {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.debug": {"msg": "{{ group_names }}"}}],
    }
    imported = {"import_playbook": "kubegpu.nodes.groups"}
    (tmp_path / "own.yml").write_text(json.dumps([imported, show]))
    run = playbook.run(machines.write(tmp_path, own, variables), str(tmp_path / "own.yml"))
    assert run.status == 0, run.screen
    _before, _task, first = run.screen.partition("ok: [p4] => {")
    assert '"kubegpu_monitored"' in first.partition("}")[0], run.screen
    assert '"kubegpu_reported"' in first.partition("}")[0], run.screen
    _before, _task, second = run.screen.partition("ok: [v100] => {")
    assert '"kubegpu_nvidia"' in second.partition("}")[0], run.screen
    assert "reported" not in second.partition("}")[0], run.screen
