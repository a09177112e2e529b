# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Virtual environments in the user's cache, made once for each Python and set of requirements."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
REQUIREMENTS = REPOSITORY / "tests" / "requirements"
CONTROLLER_VERSIONS = ("3.13", "3.12", "3.11")
ALL_VERSIONS = ("3.14", "3.13", "3.12", "3.11", "3.10", "3.9")


def cache() -> Path:
    """Return the project's folder in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(base) / "kubegpu"
    path.mkdir(parents=True, exist_ok=True)
    return path


@functools.cache
def interpreters() -> dict[str, str]:
    """Return the Pythons that really run here, by version. A pyenv shim may exist and not run."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found: dict[str, str] = {}
    for version in ALL_VERSIONS:
        name = f"python{version}"
        candidates = [
            shutil.which(name) or name,
            f"/usr/bin/{name}",
            *(str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/{name}"), reverse=True)),
        ]
        for candidate in candidates:
            path = _real_executable(candidate, version)
            if path:
                found[version] = path
                break
    return found


def _real_executable(candidate: str, version: str) -> str | None:
    code = (
        "import sys, venv, ensurepip;"
        "print('%d.%d' % sys.version_info[:2], getattr(sys, '_base_executable', sys.executable))"
    )
    try:
        answer = subprocess.run(
            [candidate, "-c", code], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = answer.stdout.split()
    return words[1] if answer.returncode == 0 and words[:1] == [version] else None


def newest_controller() -> str:
    """Return the version of the newest Python that development runs on."""
    return next(version for version in CONTROLLER_VERSIONS if version in interpreters())


def environment(name: str, version: str | None = None) -> Path:
    """Return the ``bin`` of the environment with ``tests/requirements/<name>.txt``."""
    version = version or newest_controller()
    python = interpreters()[version]
    wanted = hashlib.sha256(python.encode() + _text(REQUIREMENTS / f"{name}.txt").encode())
    path = cache() / f"venv-{name}-py{version}-{wanted.hexdigest()[:12]}"
    with _locked(path.name):
        _make(path, python, REQUIREMENTS / f"{name}.txt")
    return path / "bin"


def borrow(name: str) -> Path:
    """Return a folder of this checkout that begins as the shared one of that name.

    A folder that several checkouts write is wrong for all of them when it is for one.
    """
    own, shared = Path("build", name).absolute(), cache() / name
    with _locked(name):
        if not own.exists() and shared.exists():
            shutil.copytree(shared, own)
    return own


def give_back(name: str, *, good: bool) -> None:
    """Make this checkout's folder the shared one; one that is not good is deleted."""
    own, shared = Path("build", name).absolute(), cache() / name
    if not good:
        shutil.rmtree(own, ignore_errors=True)
        return
    with _locked(name):
        fresh = shared.with_name(f"{name}.new")
        for old in (fresh, shared):
            shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(own, fresh)
        fresh.rename(shared)


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    """One process at a time makes what several checkouts share."""
    with (cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(path: Path, python: str, requirements: Path) -> None:
    if not (path / ".complete").exists():
        print(f"Making the environment {path}", flush=True)
        shutil.rmtree(path, ignore_errors=True)
        _uv("venv", "--python", python, str(path))
        into = ("--python", str(path / "bin" / "python"))
        # As pip does: else each process that may not write there compiles what it imports.
        _uv("pip", "install", "--compile-bytecode", *into, "-r", str(requirements))
        (path / ".complete").touch()


def unpacked(requirement: str, version: str) -> Path:
    """Return a folder with one package for that Python, as it would lie in ``site-packages``."""
    path = cache() / f"unpacked-{requirement}-py{version}"
    with _locked(path.name):
        if not path.exists():
            half = path.with_name(f".{path.name}.half")
            shutil.rmtree(half, ignore_errors=True)
            into = ("--python", interpreters()[version], "--target", str(half))
            _uv("pip", "install", "--compile-bytecode", "--no-deps", *into, requirement)
            half.rename(path)
    return path


def _uv(*arguments: str) -> None:
    """Run uv, which is several times faster than pip; it asks the index that pip would ask."""
    settings = pip_settings()
    variables = {
        "UV_DEFAULT_INDEX": settings.get("index-url"),
        "SSL_CERT_FILE": settings.get("cert"),
    }
    given = {name: value for name, value in variables.items() if value}
    program = [sys.executable, "-m", "uv", "--quiet", "--no-config"]
    subprocess.run([*program, *arguments], env={**given, **os.environ}, check=True)


@functools.cache
def pip_settings() -> dict[str, str]:
    """Return the effective settings of pip (a mirror, certificates), by name."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    pairs = (line.partition("=") for line in listed.stdout.splitlines() if "=" in line)
    return {name.rpartition(".")[2]: value.strip("'\"") for name, _equals, value in pairs}


def _text(path: Path) -> str:
    """Return a requirement file with the ones that it includes."""
    text = path.read_text(encoding="utf-8")
    included = re.findall(r"^-r (\S+)", text, re.MULTILINE)
    return text + "".join(_text(path.parent / name) for name in included)


def collections() -> Path:
    """Return a folder for ANSIBLE_COLLECTIONS_PATH in which the checkout is the collection."""
    root = REPOSITORY / "build" / "collections"
    link = root / "ansible_collections" / "kubegpu" / "nodes"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(REPOSITORY, target_is_directory=True)
    return root


def site_packages(bin_folder: Path) -> Path:
    """Return where an environment keeps its packages (the ``ansible`` package's collections)."""
    return next((bin_folder.parent / "lib").glob("python3*/site-packages"))


def module_utils(bin_folder: Path) -> Path:
    """Return a folder for PYTHONPATH with ``ansible`` of an environment and nothing else of it."""
    folder = cache() / f"ansible-of-{bin_folder.parent.name}"
    folder.mkdir(exist_ok=True)
    link = folder / "ansible"
    with contextlib.suppress(FileExistsError):
        link.symlink_to(site_packages(bin_folder) / "ansible", target_is_directory=True)
    return folder


def checkout_files() -> list[str]:
    """Return the files of the checkout that git knows or does not ignore, and that are there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = {name for name in listed.stdout.split("\0") if name}
    return sorted(name for name in names if (REPOSITORY / name).is_file())


def copy_checkout(target: Path) -> Path:
    """Copy the checkout to ``target``/ansible_collections/kubegpu/nodes and return that."""
    root = target / "ansible_collections" / "kubegpu" / "nodes"
    shutil.rmtree(target, ignore_errors=True)
    for name in checkout_files():
        destination = root / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, destination, follow_symlinks=False)
    return root
