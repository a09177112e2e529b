# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Record the table of ``kubegpu.nodes.plan`` on three machines that are trees of files.

``python -m tests.integration.plans.record > docs/pictures/plan.txt``; then
``python -m tests.tools.picture docs/pictures/plan.txt`` draws it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.integration.plans import machines, playbook
from tests.unit.fixtures.machines import MACHINES

FLEET = {"gpu1": "h100x8", "gpu2": "k80", "web1": "none"}
HEAD = """\
# A run on machines that are trees of files: python -m tests.integration.plans.record
$ ansible-playbook kubegpu.nodes.plan -i inventory.yml
"""


def record(folder: Path) -> str:
    """Run the playbook on trees below ``folder`` and return what a person sees of its table."""
    fleet = {name: MACHINES[machine] for name, machine in FLEET.items()}
    run = playbook.run(machines.write(folder, fleet), width=110)
    if run.status:
        raise SystemExit(run.screen)
    return "\n".join([HEAD, *run.table()])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(record(Path(name)), file=sys.stdout)
