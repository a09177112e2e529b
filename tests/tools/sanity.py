# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run ``ansible-test sanity`` on a copy of the checkout, without ignore files and without Internet.

ansible-test has habits that are worked around here, in a home folder of its own, so that nothing
in the user's home is touched:

- It downloads a get-pip script from a host outside the package index: a stand-in takes its place.
- It strips the environment: the settings of pip have to be in a file.
- It takes any ``pythonX.Y`` on PATH, though it be a pyenv shim that does not run.
- It wants the collection in a folder ``ansible_collections/kubegpu/nodes``, and no link.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.tools import tiers
from tests.tools.environments import (
    REPOSITORY,
    cache,
    copy_checkout,
    environment,
    interpreters,
    pip_settings,
    site_packages,
    unpacked,
)

NODE_PYTHON = "3.9"
# In the default tier ruff and mypy read what pylint and pep8 read, `make lint` has yamllint, and
# the unit tests compile and import every file with the newest Python.
ELSEWHERE = ("pylint", "pep8", "yamllint", "compile", "import")

GET_PIP = '''\
"""A stand-in of get-pip.py: copies the version of pip that the project's tests unpacked once.

ansible-test makes a dozen environments, and a pip that installs pip takes five seconds in each.
"""
import shutil
import sys
import sysconfig

wanted = [word for word in sys.argv[1:] if "==" in word]
if wanted != ["{requirement}"]:
    sys.exit("This stand-in of get-pip.py has {requirement}, not " + " ".join(wanted))
shutil.copytree(r"{folder}", sysconfig.get_path("purelib"), dirs_exist_ok=True)
'''


def home(binaries: Path, controller: str) -> Path:
    """Return the home folder for ansible-test, with stand-ins for all that it would download."""
    path = cache() / "sanity"
    requirements = site_packages(binaries) / "ansible_test/_internal/python_requirements.py"
    versions = re.findall(r"pip=['\"]([0-9.]+)['\"]", requirements.read_text(encoding="utf-8"))
    if not versions:
        raise SystemExit(f"No version of pip found in {requirements}: has ansible-test changed?")
    scripts = path / ".ansible" / "test" / "cache"
    scripts.mkdir(parents=True, exist_ok=True)
    for version in versions:
        script = scripts / f"get_pip_{version.replace('.', '_')}.py"
        requirement = f"pip=={version}"
        folder = unpacked(requirement, controller)
        script.write_text(GET_PIP.format(requirement=requirement, folder=folder), encoding="utf-8")
    _write_pip_settings(path / ".config" / "pip" / "pip.conf")
    return path


def _write_pip_settings(path: Path) -> None:
    """Keep the effective settings of pip in a file: ansible-test takes no variables along."""
    settings = {"quiet": "2", **pip_settings()}
    lines = ["[global]", *(f"{name} = {value}" for name, value in settings.items())]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o600)


def _pythons(folder: Path, controller: str) -> list[str]:
    """Link the Pythons that run into ``folder``; return those to test with."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wanted = [version for version in (NODE_PYTHON, controller) if version in interpreters()]
    for version in wanted:
        (folder / f"python{version}").symlink_to(interpreters()[version])
    return wanted


def run(requirements: str, controller: str, arguments: list[str]) -> int:
    """Run all sanity tests with one ansible-core; return the exit status."""
    binaries = environment(requirements, controller)
    target = REPOSITORY / "build" / "sanity" / requirements
    root = copy_checkout(target)
    ignores = sorted((root / "tests" / "sanity").glob("ignore*"))
    if ignores:
        print("There are to be no ignore files:", *ignores, sep="\n  ")
        return 1
    if not tiers.is_full():
        # What the tarball leaves out: ruff and mypy read it in every run.
        shutil.rmtree(root / "tests")
    links = target / "bin"
    versions = _pythons(links, controller)
    if NODE_PYTHON not in versions:
        print(f"Python {NODE_PYTHON} is not here: modules are checked with {controller} only.")
    # The tests ask git which files there are.
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    variables = {
        **os.environ,
        "HOME": str(home(binaries, controller)),
        "PATH": f"{binaries}:{links}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }
    variables.pop("XDG_CONFIG_HOME", None)
    argv = [str(binaries / "ansible-test"), "sanity", "--color", "no"]
    statuses = []
    for words in _calls(versions, controller, arguments):
        print("+", "ansible-test sanity", *words, f"({_version(binaries)})", flush=True)
        done = subprocess.run([*argv, *words], cwd=root, env=variables, check=False)
        statuses.append(done.returncode)
    return max(statuses)


def _calls(versions: list[str], controller: str, arguments: list[str]) -> list[list[str]]:
    """Return the arguments of each call: in the default tier the oldest and newest Python only."""
    if arguments or tiers.is_full():
        return [arguments]
    skipped = (word for name in ELSEWHERE for word in ("--skip-test", name))
    calls = [["--python", controller, *skipped]]
    if NODE_PYTHON in versions:
        calls.append(["--test", "compile", "--test", "import", "--python", NODE_PYTHON])
    return calls


def _version(binaries: Path) -> str:
    answer = subprocess.run(
        [str(binaries / "ansible"), "--version"], capture_output=True, text=True, check=True
    )
    python = subprocess.run(
        [str(binaries / "python"), "--version"], capture_output=True, text=True, check=True
    )
    return f"{answer.stdout.splitlines()[0]}, {python.stdout.strip()}"


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2], sys.argv[3:]))
