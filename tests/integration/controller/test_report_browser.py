# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a report in a real Chromium: keyboard, filter, requests, accessibility, print."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import shutil
import subprocess
import tarfile

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report import html
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.build import build
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.sources import (
    host_sources,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.types import Request
from tests.integration.controller.browser import Browser
from tests.testbed.paths import cache, locked
from tests.testbed.tools import need, which
from tests.tools import tiers
from tests.unit.fixtures import fleet as made

full = pytest.mark.full(
    why="the default tier opens the page; this takes half a minute, and text and marks are in unit "
    "tests"
)

# Its licence (MPL-2.0) differs: it is not part of the collection.
AXE = "axe-core@4.10.3"
AXE_SHA256 = "0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292"
TABLE = "document.getElementById('inventory-table')"
NAMES = f"[...{TABLE}.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[0].innerText)"
HEADERS = f"[...{TABLE}.tHead.rows[0].cells].map(c => c.getAttribute('aria-sort'))"
STATUS = "document.getElementById('shown').textContent"
TAB, ENTER, SPACE = ("Tab", 9), ("Enter", 13), (" ", 32)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    before, now = copy.deepcopy(made.fleet()), made.fleet()
    before["gpu-20"] = before.pop("gpu-03")
    node = before["gpu-06"]["ansible_facts"]["gpu_node"]
    node["driver"].update(loaded="580.126.09", installed="580.126.09")
    earlier = build(host_sources([*before], before), Request(generated=made.EARLIER))
    report = build(host_sources([*now], now), Request(generated=made.TIME), earlier)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html.render(report), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if which("chromium") is None and not tiers.is_full():
        pytest.skip("Chromium is not installed; make test-full installs it")
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The source of axe-core, downloaded once."""
    archive = cache() / f"{AXE.replace('@', '-')}.tgz"
    with locked("axe"):
        if not archive.exists():
            need(("npm",))
            folder = tmp_path_factory.mktemp("axe")
            subprocess.run(["npm", "pack", "--silent", AXE], cwd=folder, check=True, timeout=300)
            (packed,) = folder.iterdir()
            shutil.move(packed, archive)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == AXE_SHA256
    with tarfile.open(archive) as content:
        return content.extractfile("package/axe.min.js").read().decode()


def test_it_asks_for_nothing_and_says_nothing(browser, page):
    browser.open(page)
    requests = [one["request"]["url"] for one in browser.of("Network.requestWillBeSent")]
    assert requests == [page.as_uri()]
    for silent in (
        "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled",
        "Page.javascriptDialogOpening",
    ):  # fmt: skip
        assert browser.of(silent) == []


@full
def test_what_nodes_say_is_text(browser, page):
    browser.open(page)
    assert made.HOSTILE in browser.evaluate(NAMES)
    assert browser.evaluate("document.scripts.length") == 1
    text = browser.evaluate("document.body.textContent")
    assert "fallen off the bus. {{ 7*7 }}" in text and "crictl info: runc </script>" in text


@full
def test_columns_are_sorted_by_the_keyboard(browser, page):
    browser.open(page)
    focused = "document.activeElement.textContent"
    browser.evaluate("document.getElementById('filter-state').focus()")
    pressed = []
    while len(pressed) < 10 and "Node" not in pressed:
        browser.press(*TAB)
        pressed.append(browser.evaluate(focused).strip())
    assert pressed[-1] == "Node", pressed
    unsorted = browser.evaluate(NAMES)
    browser.press(*ENTER)
    names = browser.evaluate(NAMES)
    assert names == sorted(unsorted) and browser.evaluate(HEADERS) == ["ascending"] + [None] * 9
    assert browser.evaluate(STATUS) == "11 of 11 nodes shown, sorted by Node, ascending"
    browser.press(*SPACE)
    assert browser.evaluate(NAMES) == names[::-1]
    assert browser.evaluate(HEADERS) == ["descending"] + [None] * 9
    # By the worst state, not by the word for it; nodes of one state stay in their order.
    browser.press(*TAB)
    browser.press(*ENTER)
    assert browser.evaluate(HEADERS)[:2] == [None, "ascending"]
    assert browser.evaluate(NAMES)[:5] == ["infer-01", "gpu-07", "gone-01", "gpu-05", "gpu-02"]


@full
def test_nodes_are_filtered(browser, page):
    browser.open(page)
    browser.evaluate("document.getElementById('filter-text').focus()")
    browser.call("Input.insertText", text="h100 79")
    assert browser.evaluate(NAMES) == ["gpu-07"]
    shown = "[...document.querySelectorAll('details.node')].filter(d => !d.hidden).length"
    assert browser.evaluate(shown) == 1 and browser.evaluate(STATUS) == "1 of 11 nodes shown"
    # A link to a node that is filtered out shows it.
    browser.evaluate("location.hash = [...document.querySelectorAll('a')]"
                     ".find(a => a.textContent === 'infer-01').hash")  # fmt: skip
    browser.evaluate("new Promise(done => setTimeout(done, 50))")
    assert len(browser.evaluate(NAMES)) == 11
    assert browser.evaluate("document.querySelector('details[open] b').textContent") == "infer-01"
    state = "document.getElementById('filter-state')"
    browser.evaluate(f"{state}.value = 'failed'; {state}.dispatchEvent(new Event('change'))")
    assert browser.evaluate(NAMES) == ["gpu-07", "infer-01"]


@full
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(browser, page, axe, scheme, width):
    browser.open(page, scheme, width)
    assert browser.evaluate(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    browser.evaluate(axe)
    found = json.loads(browser.evaluate("axe.run().then(r => JSON.stringify(r))"))
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    assert "color-contrast" in {one["id"] for one in found["passes"]}


@full
def test_a_phone_scrolls_down_and_not_sideways(browser, page):
    browser.open(page, width=390)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.scrollingElement.scrollWidth") <= 390


@full
def test_a_phone_shows_a_row_of_the_inventory_as_a_card_without_empty_values(browser, page):
    cells = f"[...{TABLE}.querySelectorAll('tr[data-state=no_gpu] td')]"
    shown = f"{cells}.filter(c => c.offsetParent).map(c => c.dataset.title)"
    browser.open(page)
    assert len(browser.evaluate(shown)) > 5
    browser.open(page, width=390)
    assert browser.evaluate(shown) == ["State", "System"]


@full
def test_a_button_copies_the_command_of_an_entry(browser, page):
    browser.open(page)
    fix = "document.querySelector('.action .fix')"
    browser.evaluate(f"{fix}.querySelector('button').click()")
    browser.evaluate("new Promise(done => setTimeout(done, 50))")
    assert browser.evaluate(f"{fix}.querySelector('button').textContent") in ("Copied", "Selected")
    assert browser.evaluate(f"{fix}.querySelector('code').textContent").startswith(
        "ansible-playbook"
    )


@full
def test_all_of_it_is_printed(browser, page, tmp_path):
    need(("pdftotext",))
    browser.open(page)
    data = browser.call("Page.printToPDF", preferCSSPageSize=True)["data"]
    (tmp_path / "report.pdf").write_bytes(base64.b64decode(data))
    text = " ".join(subprocess.check_output(
        ["pdftotext", "-layout", tmp_path / "report.pdf", "-"], text=True
    ).split())  # fmt: skip
    for part in (
        "7 of 10 nodes are ready", "gpu-20", made.HOSTILE, "1650500070003",
        "branch 580 is the newest long-term branch", "dmesg: not permitted",
        "fallen off the bus. {{ 7*7 }}",
    ):  # fmt: skip
        assert part in text, part
    first = subprocess.check_output(
        ["pdftotext", "-layout", "-l", "1", tmp_path / "report.pdf", "-"], text=True
    )
    # The first page ends with what is to be done first, and is not half empty.
    assert "Drain the node and power it off and on." in first, first
    # A table that goes on has its titles again.
    assert text.count("In the cluster") == 2
    assert (
        "Filter" not in text
        and browser.evaluate("document.querySelectorAll('details[open]').length") == 0
    )


@full
def test_without_script_all_of_it_is_there(browser, page):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        root = browser.call("DOM.getDocument", depth=1)["root"]["nodeId"]
        text = browser.call("DOM.getOuterHTML", nodeId=root)["outerHTML"]
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert "<button" not in text and text.count('<details class="node"') == 11
    assert '<form class="filter" hidden=""' in text
