# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tarball, installed into an empty place, offline: is it whole, and is all of it documented?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.tools.environments import REPOSITORY, checkout_files, copy_checkout, site_packages

BIN = Path(sys.executable).parent
NAMESPACE = "kubegpu.nodes"
DEPENDENCIES = ("community.general", "kubernetes.core")


def names(folder: str, *, suffix: str = ".py") -> list[str]:
    """Return the names of the checkout's files directly in ``folder``."""
    return [
        Path(name).stem
        for name in checkout_files()
        if Path(name).parent == Path(folder) and name.endswith(suffix)
    ]


MODULES = names("plugins/modules")
FILTERS = names("plugins/filter")
ROLES = sorted({Path(name).parts[1] for name in checkout_files() if name.startswith("roles/")})
PLAYBOOKS = names("playbooks", suffix=".yml")


@dataclass(frozen=True)
class Installed:
    tarball: Path
    root: Path
    environment: dict[str, str]

    def run(self, *argv: str) -> str:
        """Run a program of Ansible with the installed collection only; return its output."""
        done = subprocess.run(
            [str(BIN / argv[0]), *argv[1:]],
            cwd=self.root.parents[2],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("tarball")
    place = tmp_path_factory.mktemp("installed")
    environment = {
        **os.environ,
        # The home is empty too, and the ansible package's collections meet the dependencies.
        "HOME": str(tmp_path_factory.mktemp("home")),
        "ANSIBLE_COLLECTIONS_PATH": f"{place}:{site_packages(BIN)}",
        "ANSIBLE_NOCOLOR": "true",
    }
    copied = copy_checkout(folder / "source")
    build = [str(BIN / "ansible-galaxy"), "collection", "build", str(copied)]
    subprocess.run([*build, "--output-path", str(folder)], check=True, env=environment)
    (tarball,) = folder.glob("*.tar.gz")
    root = place / "ansible_collections" / "kubegpu" / "nodes"
    result = Installed(tarball, root, environment)
    assert not root.exists()
    root.parents[1].mkdir()
    # No --no-deps: the dependencies' ranges are checked against what is there.
    result.run(
        "ansible-galaxy", "collection", "install", "--offline", str(tarball), "-p", str(place)
    )
    return result


def test_the_tarball_is_named_by_the_version_of_galaxy_yml(installed: Installed) -> None:
    version = yaml.safe_load((REPOSITORY / "galaxy.yml").read_text())["version"]
    assert installed.tarball.name == f"kubegpu-nodes-{version}.tar.gz"


def test_the_tarball_holds_what_users_need_and_nothing_of_development(installed: Installed) -> None:
    with tarfile.open(installed.tarball) as archive:
        found = {name for name in archive.getnames() if not archive.getmember(name).isdir()}
    folders = ("plugins/", "roles/", "playbooks/", "docs/", "meta/")
    wanted = {name for name in checkout_files() if name.startswith(folders)}
    assert wanted <= found
    assert {"README.md", "LICENSE", "CHANGELOG.md"} <= found
    unwanted = ("tests/", "molecule/", "build/", ".", "Makefile", "noxfile.py", "pyproject.toml")
    assert [name for name in found if name.startswith(unwanted)] == []


def test_the_dependencies_are_those_of_the_ansible_package(installed: Installed) -> None:
    answer = installed.run("ansible-galaxy", "collection", "list", "--format", "json")
    found = {name for collections in json.loads(answer).values() for name in collections}
    assert {NAMESPACE, *DEPENDENCIES} <= found


@pytest.mark.parametrize("kind", ["module", "filter"])
def test_every_plugin_is_documented(installed: Installed, kind: str) -> None:
    expected = {"module": MODULES, "filter": FILTERS}[kind]
    full = [f"{NAMESPACE}.{name}" for name in expected]
    listed = json.loads(installed.run("ansible-doc", "-t", kind, "-l", "-j", NAMESPACE))
    assert sorted(listed) == sorted(full)
    documents = json.loads(installed.run("ansible-doc", "-t", kind, "-j", *full))
    for name in full:
        document = documents[name]
        assert document["doc"]["short_description"]
        assert document["examples"], name
        assert document["return"], name
    # For people too, not only as data.
    installed.run("ansible-doc", "-t", kind, *full)


def test_every_role_is_documented(installed: Installed) -> None:
    full = [f"{NAMESPACE}.{role}" for role in ROLES]
    # One call for all: the start of ansible-doc takes longer than a role.
    documents = json.loads(installed.run("ansible-doc", "-t", "role", "-j", *full))
    assert sorted(documents) == full
    for name, document in documents.items():
        assert "main" in document["entry_points"], name
        for entry_point in document["entry_points"].values():
            assert entry_point["short_description"], name
    installed.run("ansible-doc", "-t", "role", *full)


def test_every_playbook_is_found_by_its_name_and_parses(installed: Installed) -> None:
    # One call for all: the start of ansible-playbook takes longer than a playbook.
    names = [f"{NAMESPACE}.{playbook}" for playbook in PLAYBOOKS]
    shown = installed.run("ansible-playbook", "--syntax-check", "-i", "localhost,", *names)
    assert shown.count("playbook: ") == len(names)


def test_the_execution_environment_names_files_that_are_there(installed: Installed) -> None:
    text = (installed.root / "meta" / "execution-environment.yml").read_text()
    for path in yaml.safe_load(text)["dependencies"].values():
        assert (installed.root / path).is_file()
