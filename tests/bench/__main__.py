# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``python -m tests.bench``: what the collection costs, beside what people use today.

``--only growth`` measures a part, ``--rounds N`` how often. Figures go to build/bench.json, and
with ``--write`` into docs/benchmarks.md.
"""

from __future__ import annotations

import os
import sys

# Read by the testbed's modules when they are first imported.
os.environ["KUBEGPU_FLEET"] = "bench"

from tests.bench.bench import main

sys.exit(main())
