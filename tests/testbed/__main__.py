# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys

# Every module below asks for the fleet's name, so it is settled before they are read.
if "--drivers" in sys.argv:
    os.environ["KUBEGPU_FLEET"] = "drivers"
if any(word.startswith("cluster-") for word in sys.argv[1:]):
    os.environ["KUBEGPU_FLEET"] = "cluster"

from tests.testbed.cli import main

sys.exit(main([word for word in sys.argv[1:] if word != "--drivers"]))
