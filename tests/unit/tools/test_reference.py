# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The generated pages and pictures of docs/ are those of the code."""

from __future__ import annotations

import ast
import re
from xml.etree import ElementTree

import pytest

from plugins.module_utils._monitoring.dashboard import PANELS
from plugins.plugin_utils._variables_data import PLAYBOOK_VARIABLES, with_keys
from tests.tools import dashboard, picture, reference
from tests.tools.environments import REPOSITORY

DOCS = REPOSITORY / "docs"
SVG = "{http://www.w3.org/2000/svg}"
PICTURES = sorted((DOCS / "pictures").glob("*.txt"))


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_generated_page_is_up_to_date(name):
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    assert text == reference.PAGES[name](), "Next step: python -m tests.tools.reference"


def test_every_variable_of_the_playbooks_has_a_meaning():
    assert [
        name for name, one in with_keys(PLAYBOOK_VARIABLES).items() if not one.get("description")
    ] == []


def test_a_variable_is_described_once():
    rows = re.findall(r"(?m)^\| `([\w.]+)` \|", reference.variables_page())
    assert len(rows) == len(set(rows)) > 300
    assert {
        "kubegpu_kube.host",
        "kubegpu_packages.lock_timeout",
        "nvidia_driver_enabled",
        "gpu_verify_all",
    } <= set(rows)


def test_a_finding_has_all_that_the_code_says_of_it():
    page = reference.findings_page()
    text = page.partition("### `driver_missing`\n")[2].partition("\n###")[0]
    for part in ("*Next step*: ", "*Fix*: `ansible-playbook", "*Layer*: module"):
        assert part in text
    assert "*Message*: `CUDA driver version is insufficient for CUDA runtime version`" in page
    assert "explained by the layers bus to" in page


def test_codes_come_from_calls_by_position_by_keyword_and_by_a_constant():
    page = reference.findings_page()
    for code in ("ptx_toolchain", "unmet_requirement", "no_plugin", "secure_boot"):
        assert f"\n### `{code}`\n" in page


def test_no_package_with_findings_is_left_out():
    assert {entry.package for entry in reference._entries()} <= set(reference._SUBJECTS)


def test_what_only_a_run_knows_is_left_open():
    tree = ast.parse('NAME = "gpu"\nf"the {NAME} of {node}"\n')
    constants = reference._constants(tree)
    assert reference._text(tree.body[1].value, constants) == "the gpu of ..."


@pytest.mark.parametrize("transcript", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_that_of_its_transcript(transcript):
    drawn = picture.draw(transcript.read_text(encoding="utf-8"))
    assert transcript.with_suffix(".svg").read_text(encoding="utf-8") == drawn


def test_the_pictures_of_the_architecture_are_up_to_date():
    pictures = picture.design()
    assert {path.name for path in pictures} == {"layers.svg", "flow.svg"}
    for path, drawn in pictures.items():
        assert path.read_text(encoding="utf-8") == drawn, "Next step: picture --design"
        assert "_verify<" in drawn


def test_the_picture_of_the_dashboard_has_all_its_panels():
    drawn = dashboard.picture()
    assert dashboard.PICTURE.read_text(encoding="utf-8") == drawn, "python -m tests.tools.dashboard"
    texts = [one.text for one in ElementTree.fromstring(drawn).iter(f"{SVG}text")]
    assert {panel.title for panel in PANELS} <= set(texts)
    assert "Drawn from the dashboard's JSON with example values" in texts


def test_an_arrow_past_a_row_has_a_place_in_it():
    edges = (
        "flowchart TD\n    a[first] --> b & c\n    b --> d[(_d: last)]\n    a --> d\n    c --> d\n"
    )
    root = ElementTree.fromstring(picture.draw_flow(edges))
    lines = [one.get("points").split() for one in root.iter(f"{SVG}polyline")]
    assert sorted(map(len, lines)) == [2, 2, 2, 2, 4]
    past = next(points[1] for points in lines if len(points) == 4)
    assert past.split(",")[0] not in {
        points[-1].split(",")[0] for points in lines if len(points) == 2
    }
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert texts == ["first", "b", "c", "_d: last"]


def test_a_picture_is_xml_with_each_cell_in_its_column():
    root = ElementTree.fromstring(picture.draw("$ plan <x>\n\nNode  Why\n----  ---\ngpu1  a & b\n"))
    cells = [(one.text, float(one.get("x")), int(one.get("y"))) for one in root.iter(f"{SVG}text")]
    assert [text for text, *_place in cells] == [
        "$ plan <x>", "Node", "Why", "----", "---", "gpu1", "a & b",
    ]  # fmt: skip
    assert {x for text, x, _y in cells if text in ("Why", "---", "a & b")} == {cells[2][1]}
    assert len({y for _text, _x, y in cells}) == 4
