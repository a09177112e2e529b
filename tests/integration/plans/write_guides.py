# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the outputs in guides and pages: ``python -m tests.integration.plans.write_guides``."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

# Makes the collection importable.
importlib.import_module("tests.conftest")
guides = importlib.import_module("tests.integration.plans.guides")
page_outputs = importlib.import_module("tests.integration.plans.page_outputs")
compared = importlib.import_module("tests.integration.plans.test_guides")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for path, text in guides.current(compared.OUTPUTS, Path(name)).items():
            path.write_text(text, encoding="utf-8")
    for path, text in page_outputs.pages().items():
        path.write_text(page_outputs.written(text), encoding="utf-8")
