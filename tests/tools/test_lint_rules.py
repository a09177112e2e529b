# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Are the rules in force that pyproject.toml and meta/runtime.yml promise?"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.tools.environments import REPOSITORY, checkout_files

# What asks for a distribution: of Ansible's own facts, and of ours.
LADDER = re.compile(
    r"\bansible_(?:distribution|os_family|pkg_mgr|lsb)|\bos_family\b|\bdistribution\w*"
    r"|\bos(?:\.|'?\]\[?'?|\[')(?:id|family|version|codename|package_manager)\b"
)
RUFF = Path(sys.executable).parent / "ruff"
PLUGINS = [name for name in checkout_files() if name.startswith("plugins/") and ".py" in name]
SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
# Sent to nodes as a file, where it runs without the collection.
PROGRAM = "plugins/module_utils/_exporter/program.py"
HEAD = "from __future__ import annotations\n\n"
# Lines that a file, a function and a module (without comments and empty lines) have at most.
FILE, FUNCTION, MODULE = 500, 60, 100
DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
# Longer functions: a search whose steps share their state.
LONG = {"plugins/module_utils/_mig/placement.py: place"}


def found(path: str, code: str, *arguments: str) -> set[str]:
    """Return the rules that ruff finds broken in ``code``, if it stood at ``path``."""
    done = subprocess.run(
        [str(RUFF), "check", "--output-format", "json", *arguments, "--stdin-filename", path, "-"],
        input=HEAD + code, cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return {message["code"] for message in json.loads(done.stdout)}


@pytest.mark.parametrize(
    "code",
    [
        "import os\n\nprint(os.name)\n",
        "import os.path\n\nprint(os.path.sep)\n",
        "from os import environ\n\nprint(environ)\n",
        "import subprocess\n\nprint(subprocess)\n",
        "from subprocess import run\n\nprint(run)\n",
        "from ansible.module_utils.basic import AnsibleModule\n\nprint(AnsibleModule)\n",
        "def late() -> None:\n    import os\n\n    print(os.name)\n",
    ],
)
def test_domain_code_cannot_import_the_world(code: str) -> None:
    assert "TID251" in found("plugins/module_utils/_new.py", code)
    assert "TID251" not in found("plugins/module_utils/_host/files.py", code)


def test_domain_code_may_import_the_rest() -> None:
    code = "import json\n\nfrom ._core.errors import InputError\n\nprint(json, InputError)\n"
    assert found("plugins/module_utils/_new.py", code) == set()


def test_every_exception_from_the_rule_is_a_file_that_needs_it() -> None:
    ignores = SETTINGS["tool"]["ruff"]["lint"]["per-file-ignores"]
    world = [name for name, rules in ignores.items() if "TID251" in rules and name[0] != "!"]
    assert world
    for name in world:
        # Of a package that touches the world it is enough that one file does.
        texts = [path.read_text(encoding="utf-8") for path in sorted(REPOSITORY.glob(name))]
        rules = (
            found("plugins/module_utils/_new.py", text, "--select", "TID251") for text in texts
        )
        assert any("TID251" in broken for broken in rules), name


@pytest.fixture(scope="module")
def in_its_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugins as import-linter wants them: below ansible_collections."""
    place = tmp_path_factory.mktemp("layers")
    root = place / "ansible_collections/kubegpu/nodes"
    for name in PLUGINS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / name, root / name)
    shutil.copyfile(REPOSITORY / "pyproject.toml", root / "pyproject.toml")
    return place


@pytest.mark.parametrize(
    ("path", "line", "broken"),
    [
        ("_core/errors.py", "from .._host import files", "module_utils._core.errors -> "),
        ("_docker/api.py", "from .._containerd import config", "module_utils._docker.api -> "),
        (
            "_kube/quite_new.py",
            "from ...plugin_utils import _hosts",
            "module_utils._kube.quite_new",
        ),
        ("_quite_new/plan.py", "from .._core import errors", "_quite_new"),
    ],
    ids=["upwards", "next to", "to the controller", "a package without a layer"],
)
def test_the_layers_of_packages(in_its_place: Path, path: str, line: str, broken: str) -> None:
    root = in_its_place / "ansible_collections/kubegpu/nodes"
    file = root / "plugins/module_utils" / path
    before = file.read_text(encoding="utf-8") if file.exists() else None
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{before or ''}\n{line}\n", encoding="utf-8")
    try:
        done = subprocess.run(
            [str(RUFF.parent / "lint-imports"), "--config", "pyproject.toml", "--no-cache"],
            cwd=root, env={**os.environ, "PYTHONPATH": str(in_its_place)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        if before is None:
            shutil.rmtree(file.parent) if path.startswith("_quite_new") else file.unlink()
        else:
            file.write_text(before, encoding="utf-8")
    assert done.returncode == 1, done.stdout + done.stderr
    assert broken in done.stdout, done.stdout


def test_no_plugin_asserts() -> None:
    assert "S101" in found("plugins/module_utils/_new.py", "assert 1 + 1\n")
    assert "S101" in found("plugins/modules/new.py", "assert 1 + 1\n")


@pytest.mark.parametrize("path", PLUGINS)
def test_no_plugin_imports_subprocess_or_silences_the_rules(path: str) -> None:
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.add(node.module.partition(".")[0])
    assert "subprocess" not in imported or path == PROGRAM
    for rule in ("TID251", "S101"):
        assert f"noqa: {rule}" not in text


def without_documentation(text: str) -> list[str]:
    """Return the lines of a plugin without the texts that ansible-doc reads."""
    documentation: set[int] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in DOCUMENTATION:
            documentation.update(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return [line for number, line in lines if number not in documentation]


def too_long(path: str, text: str) -> list[str]:
    """Return what is longer in a plugin than the house rules allow, with its number of lines."""
    lines = without_documentation(text)
    sizes = [
        (f"{path}: {node.name}", (node.end_lineno or 0) - node.lineno + 1, FUNCTION)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    if not path.endswith(("/data.py", "_data.py")):
        sizes.append((path, len(lines), FILE))
    if path.startswith("plugins/modules/"):
        code = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
        sizes.append((path, len(code), MODULE))
    return [f"{name}: {size}" for name, size, most in sizes if size > most]


def test_no_file_and_no_function_is_too_long() -> None:
    texts = {path: (REPOSITORY / path).read_text(encoding="utf-8") for path in PLUGINS}
    found = [line for path, text in texts.items() for line in too_long(path, text)]
    assert [line for line in found if line.rpartition(": ")[0] not in LONG] == []


def test_what_is_too_long_would_be_seen() -> None:
    function = "def long():\n" + "    pass\n" * 60
    assert too_long("plugins/filter/a.py", function) == ["plugins/filter/a.py: long: 61"]
    assert too_long("plugins/filter/a.py", function.replace("    pass\n", "", 1)) == []
    module = 'RETURN = r"""\n' + "text:\n" * 600 + '"""\n' + "# Why.\n\n" + "a = 1\n" * 100
    assert too_long("plugins/modules/a.py", module) == []
    assert too_long("plugins/modules/a.py", module + "a = 1\n") == ["plugins/modules/a.py: 101"]
    table = "a = 1\n" * 501
    assert too_long("plugins/module_utils/_a/plan.py", table) == [
        "plugins/module_utils/_a/plan.py: 501"
    ]
    assert too_long("plugins/module_utils/_a/known_data.py", table) == []


def test_the_action_group_names_every_module() -> None:
    text = (REPOSITORY / "meta" / "runtime.yml").read_text(encoding="utf-8")
    modules = [Path(name).stem for name in PLUGINS if name.startswith("plugins/modules/")]
    assert yaml.safe_load(text)["action_groups"]["nodes"] == sorted(modules)


def test_there_are_no_sanity_ignores() -> None:
    assert [name for name in checkout_files() if name.startswith("tests/sanity/ignore")] == []


def conditions(tree: object) -> list[str]:
    """Return all conditions of a file of tasks or plays, however deep."""
    if isinstance(tree, list):
        return [text for item in tree for text in conditions(item)]
    if not isinstance(tree, dict):
        return []
    own = [str(value) for key, value in tree.items() if key in ("when", "failed_when")]
    return own + [text for value in tree.values() for text in conditions(value)]


@pytest.mark.parametrize(
    "condition",
    [
        "ansible_distribution == 'Rocky'",
        "ansible_facts['os_family'] == 'RedHat'",
        "ansible_facts.distribution_major_version | int >= 9",
        "ansible_facts['gpu_node']['os']['id'] in ['rocky', 'rhel']",
        "ansible_facts['gpu_node'].os.family == 'suse'",
        "gpu_node.os['package_manager'] != 'apt'",
    ],
)
def test_a_ladder_over_distributions_would_be_seen(condition: str) -> None:
    tree = [{"block": [{"name": "A task", "when": ["true", condition]}]}]
    assert any(LADDER.search(text) for text in conditions(tree))


def test_no_task_asks_for_the_distribution() -> None:
    """What differs between distributions is data: ``_distro/data.py``."""
    names = [
        name
        for name in checkout_files()
        if name.endswith((".yml", ".yaml"))
        and re.match(r"playbooks/(?!files/)|roles/[^/]+/(?:tasks|handlers)/", name)
    ]
    assert len(names) > 40
    seen = 0
    for name in names:
        tree = yaml.safe_load((REPOSITORY / name).read_text(encoding="utf-8"))
        for text in conditions(tree):
            seen += 1
            assert not LADDER.search(text), f"{name}: {text}"
    assert seen > 60


def test_the_version_in_the_code_is_that_of_galaxy_yml() -> None:
    galaxy = yaml.safe_load((REPOSITORY / "galaxy.yml").read_text(encoding="utf-8"))
    text = (REPOSITORY / "plugins/module_utils/_core/collection.py").read_text(encoding="utf-8")
    assert f'COLLECTION = "{galaxy["version"]}"' in text


@pytest.mark.parametrize("name", [name for name in PLUGINS if name.startswith("plugins/filter/")])
def test_a_filter_imports_what_it_needs_where_it_is_called(name):
    """Ansible loads all filters of a collection for one, in each process that it forks."""
    tree = ast.parse((REPOSITORY / name).read_text(encoding="utf-8"))
    imports = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    ours = [module for module in imports if ".module_utils." in module and "kubegpu" in module]
    # A small one without imports of its own.
    assert [module for module in ours if not module.endswith("._hardware.vendors")] == []


def test_what_runs_with_a_nodes_python_imports_nothing_of_the_controller() -> None:
    """The full tier runs these with Python 3.9, which cannot read the newest ansible-core."""
    folders = ("tests/unit/plugins/module_utils/", "tests/unit/plugins/modules/")
    controller = re.compile(
        r"^\s*from ansible_collections\.kubegpu\.nodes\.plugins\.(?:action|callback|filter)\b", re.M
    )
    names = [name for name in checkout_files() if name.startswith(folders) and ".py" in name]
    assert names
    texts = {name: (REPOSITORY / name).read_text(encoding="utf-8") for name in names}
    assert [name for name, text in texts.items() if controller.search(text)] == []
