# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guides: their outputs are those of a run, and what they name is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables_data import (
    PLAYBOOK_VARIABLES,
)
from tests.integration.plans import (
    guide_outputs_clusters,
    guide_outputs_machines,
    guides,
    page_outputs,
)
from tests.tools.environments import REPOSITORY

OUTPUTS: Mapping[str, guides.Output] = {
    **guide_outputs_machines.OUTPUTS,
    **guide_outputs_clusters.OUTPUTS,
}
WRITE = "python -m tests.integration.plans.write_guides"
TEXTS = [pytest.param(text, id=path.stem) for path, text in guides.guides().items()]


def test_the_outputs_in_the_guides_are_those_of_a_run(tmp_path: Path) -> None:
    for path, text in guides.current(OUTPUTS, tmp_path).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date: {WRITE}"


def test_each_output_has_a_name_and_a_place() -> None:
    found = [guides.outputs(text) for text in guides.guides().values()]
    named = [name for names in found if any(names) for name in names]
    assert sorted(named) == sorted(OUTPUTS), "a block of the language text is an output with a name"


def test_the_tables_of_results_in_the_pages_are_made_by_the_code() -> None:
    found = []
    for path, text in page_outputs.pages().items():
        found += page_outputs.outputs(text)
        assert page_outputs.written(text) == text, f"{path.name} is out of date: {WRITE}"
    assert sorted(found) == sorted(page_outputs.OUTPUTS)


def test_a_table_of_a_page_that_a_person_edited_would_be_seen() -> None:
    text = "before\n\n<!-- output: machine-reboot -->\n\n```\nResult\n```\n\nafter\n"
    made = page_outputs.written(text)
    assert "nouveau is loaded and in use" in made and made.endswith("\n```\n\nafter\n")
    assert page_outputs.written(made) == made


def options() -> Iterator[str]:
    yield from PLAYBOOK_VARIABLES
    for path in REPOSITORY.glob("roles/*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            yield from entry.get("options", ())


ROLES = sorted(path.name for path in (REPOSITORY / "roles").iterdir())
# What else has such a name: roles, modules, filters, and what roles publish.
NAMES = {
    *options(), *ROLES, *(f"{role}_{kind}" for role in ROLES for kind in ("plan", "result")),
    *(path.stem for path in REPOSITORY.glob("plugins/*/*.py")),
}  # fmt: skip
VARIABLE = re.compile(rf"(?<![\w./-])(?:kubegpu|{'|'.join(ROLES)})_[a-z0-9_]+(?![\w*])")
# Groups of a run, and metrics.
GROUP = re.compile(r"kubegpu_(?:nvidia|amd|intel|none|refused|failed|cluster|monitored|gpu\w*)")
PHASES = {
    "driver", "mig", "cuda", "toolkit", "runtime", "labels", "dra", "device_plugin", "monitoring",
    "verify",
}  # fmt: skip


def unknown(text: str) -> list[str]:
    """Return the variables and tags in a guide that this collection does not have."""
    names = {name for name in VARIABLE.findall(text) if not GROUP.fullmatch(name)}
    tags = {tag for found in re.findall(r"tags (\w+(?:,\w+)*)", text) for tag in found.split(",")}
    playbooks = set(re.findall(r"ansible-playbook kubegpu\.nodes\.(\w+)", text))
    known = {path.stem for path in (REPOSITORY / "playbooks").glob("*.yml")} | {"examples"}
    return sorted((names - NAMES) | (tags - PHASES) | (playbooks - known))


@pytest.mark.parametrize("text", TEXTS)
def test_what_a_guide_names_is_there(text: str) -> None:
    # An output may show a mistake.
    assert unknown(guides.without_outputs(text)) == []


def test_what_is_not_there_would_be_seen() -> None:
    text = "``nvidia_driver_brunch``, kubegpu.nodes.site --tags drivers, kubegpu_nvidia\n"
    assert unknown(text + "ansible-playbook kubegpu.nodes.sight") == [
        "drivers", "nvidia_driver_brunch", "sight",
    ]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_file_of_variables_is_of_a_group_or_host_of_the_inventory(text: str) -> None:
    files = guides.files_of(text)
    inventory = files.get("inventory.yml", "")
    for name in files:
        owner = Path(name).stem
        assert not inventory or owner in ("inventory", "all") or f"{owner}:" in inventory, name
