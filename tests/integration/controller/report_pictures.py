# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make the pictures of docs/report.md: ``python -m tests.integration.controller.report_pictures``.

The argument is a ``report.html``. Those of the documentation are of the fleet of ``make demo``.
"""

from __future__ import annotations

import argparse
import base64
import subprocess
import tempfile
from pathlib import Path

from tests.integration.controller.browser import Browser
from tests.testbed.tools import need
from tests.tools.environments import REPOSITORY

PICTURES = REPOSITORY / "docs" / "pictures"
# In pixels: of a window on a screen, and of a phone.
SCREEN, PHONE = (1280, 1000), (390, 844)
DPI = "80"
PAGE = "report-print"


def take(page: Path, folder: Path) -> list[Path]:
    """Write the pictures of a report into a folder, and return them."""
    need(("pdftoppm",))
    with tempfile.TemporaryDirectory() as temporary, Browser(Path(temporary)) as browser:
        made = []
        for scheme in ("light", "dark"):
            browser.open(page, scheme, *SCREEN)
            made.append(_screen(browser, folder / f"report-{scheme}.png"))
        browser.open(page, "light", *PHONE)
        browser.evaluate(
            "document.getElementById('inventory').scrollIntoView({behavior: 'instant'})"
        )
        made.append(_screen(browser, folder / "report-phone.png"))
        browser.open(page)
        printed = Path(temporary, "report.pdf")
        pdf = browser.call("Page.printToPDF", preferCSSPageSize=True)["data"]
        printed.write_bytes(base64.b64decode(pdf))
        argv = ["pdftoppm", "-png", "-singlefile", "-r", DPI, str(printed), str(folder / PAGE)]
        subprocess.run(argv, check=True, timeout=60)
        return [*made, folder / f"{PAGE}.png"]


def _screen(browser: Browser, path: Path) -> Path:
    path.write_bytes(base64.b64decode(browser.call("Page.captureScreenshot")["data"]))
    return path


def main() -> None:
    """Write the pictures and say where they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, help="a report.html")
    parser.add_argument("--folder", type=Path, default=PICTURES)
    options = parser.parse_args()
    for path in take(options.report.absolute(), options.folder):
        print(path)


if __name__ == "__main__":
    main()
