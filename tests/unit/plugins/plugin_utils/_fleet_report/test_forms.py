# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as HTML and Markdown: everything that a node says is text."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report import html, markdown
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.build import build
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.sources import (
    host_sources,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.types import Request
from tests.unit.fixtures import fleet as made

# What would end an element or an attribute, begin a script, or be a template.
HOSTILE = (
    "</script><script>alert(1)</script>",
    "\"onmouseover='alert(1)' x=\"",
    "<!-- <img src=x onerror=alert(1)>",
    "{{ 7*7 }} {% raw %} {# c #}",
    "&lt;b&gt; &amp;",
    "a|b\nc `d` [e](javascript:alert(1)) **f**",
)


def report(hosts=None, previous=None):
    hosts = made.fleet() if hosts is None else hosts
    return build(host_sources([*hosts], hosts), Request(generated=made.TIME), previous)


class Page(HTMLParser):
    """Collects tags, attributes, and texts by the tag that they are in."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *one) for one in attrs]
        if tag not in ("meta", "input", "rect"):
            self.open.append(tag)

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def shown(self):
        return "".join(text for tag, text in self.texts if tag not in ("script", "style"))


def replaced(value, text):
    """Return JSON data with another text for each text that a node gave; keys stay."""
    if isinstance(value, dict):
        fixed = ("state", "severity", "status", "kind", "schema")
        return {
            key: one if key in fixed and isinstance(one, str) else replaced(one, text)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [replaced(one, text) for one in value]
    return f"{value}{text}" if isinstance(value, str) and value else value


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_text_in_every_field_stays_text(hostile):
    good = report(previous=report({"old": {}}))
    bad = replaced(good, hostile)
    before, after = Page(html.render(good)), Page(html.render(bad))
    assert not after.open
    # Nothing but texts and values of known attributes differs.
    assert [*after.tags] == [*before.tags]
    assert [one[:2] for one in after.attributes] == [one[:2] for one in before.attributes]
    shown = after.shown()
    for node in bad["nodes"]:
        assert node["name"] in shown
        for cause in node["causes"]:
            assert cause["evidence"] in shown and cause["cause"] in shown
    assert shown.count(hostile) > 200


def test_each_field_is_shown():
    """A text of its own in each field of a node; nothing is left out."""
    seen, number = [], iter(range(10_000))

    def marked(value, key=""):
        if isinstance(value, dict):
            return {name: marked(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [marked(one, key) for one in value]
        known = ("state", "severity", "status", "kind", "schema", "machine_id", "id")
        if isinstance(value, str) and value and key not in known:
            seen.append(f"mark{next(number)}x")
            return seen[-1]
        return value

    found = report()
    found["nodes"] = marked(found["nodes"])
    shown = Page(html.render(found)).shown()
    assert len(seen) > 500 and [one for one in seen if one not in shown] == []


def test_the_policy_allows_this_script_and_this_style_alone():
    text = html.render(report())
    page = Page(text)
    (policy,) = [value for _tag, name, value in page.attributes
                 if name == "content" and "default-src" in value]  # fmt: skip
    for tag in ("script", "style"):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert page.tags.count("script") == page.tags.count("style") == 1
    assert {name for _tag, name, _value in page.attributes if name.startswith("on")} == set()


def test_the_page_asks_for_nothing():
    page = Page(html.render(report()))
    assert not {"link", "img", "iframe", "object", "video"} & {*page.tags}
    for _tag, name, value in page.attributes:
        assert name not in ("src", "style", "srcset", "action")
        assert name != "href" or value.startswith("#")
    # Each link leads to a part of the page.
    ids = [value for _tag, name, value in page.attributes if name == "id"]
    links = {value[1:] for _tag, name, value in page.attributes if name == "href"}
    assert links <= {*ids} and len(ids) == len({*ids})


def test_equal_reports_are_equal_pages():
    assert html.render(report()) == html.render(report())
    assert markdown.render(report()) == markdown.render(report())


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_text_does_not_end_a_cell_of_markdown(hostile):
    good, bad = report(), replaced(report(), hostile)
    before = [re.sub(r"\\.", "", line) for line in markdown.render(good).splitlines()]
    after = [re.sub(r"\\.", "", line) for line in markdown.render(bad).splitlines()]
    assert [line.count("|") for line in after] == [line.count("|") for line in before]
    assert not any("<script" in line or "<img" in line or "](" in line for line in after)


def test_markdown_says_what_the_page_says():
    text = markdown.render(report())
    assert text.startswith("# GPU fleet\n\n**7 of 10 nodes are ready")
    for part in (
        "No earlier report exists.",
        "| warning | 2 | Rows of the GPU's memory are to be replaced, which needs a reset. |",
        "| H100 SXM5 80GB · debian 12 | Driver | 580.126.09: 6<br>570.195.03: 1 (gpu-06) |",
        "| gpu-01 | Ready | debian 12 | 8x H100 SXM5 80GB | 580.126.09 open | 12.8.1 | 1.20.0-1 | ",
        "| gpu-01: nvidia.com/gpu 3 of 8 in use |",
        "### gpu-07: Failed",
        "| gone-01 | the node | it could not be read |",
    ):
        assert part in text


def test_a_fleet_without_trouble_and_one_without_nodes():
    hosts = {name: one for name, one in made.fleet().items() if name in ("gpu-01", "gpu-03")}
    for found in (report(hosts), report({})):
        text = Page(html.render(found)).shown()
        for sentence in ("Nothing to do.", "No earlier report exists.", "No configuration drift"):
            assert sentence in text and sentence in markdown.render(found)
        assert not {"To do", "Changes", "Configuration drift", "Not checked"} & {*text.splitlines()}
