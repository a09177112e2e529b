# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the documentation site: ``make docs``. Nothing is read from the network.

Guides, modules, filters and roles come from antsibull-docs. The pages of ``docs/`` and the READMEs
of the roles are copied as they are, to the same relative places, so that their links work in the
repository and on the site.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path

from tests.tools.environments import REPOSITORY, checkout_files, copy_checkout
from tests.tools.picture import DIAGRAM

COLLECTION = "kubegpu.nodes"
# The address of galaxy.yml, under which guides name the pages of the repository.
REPOSITORY_URL = "https://kubegpu.example/nodes/blob/main/"
_PAGES = re.compile(
    r"README\.md|CHANGELOG\.md|CONTRIBUTING\.md|LICENSE|docs/.*|roles/[^/]+/(?:README\.md|files/.*)"
    r"|playbooks/.*|tests/bench/reference/.*"
)
_LINK = re.compile(r"`([^`<]+) <" + re.escape(REPOSITORY_URL) + r"([^>#]+)\.md(?:#[^>]*)?>`__?")
# A folder is no page: its name stays, without a link.
_FOLDER_LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)*(?:docs/)?(?:playbooks/examples|docsite/rst)\)")
# A guide is a page of the collection's own documentation.
_GUIDE_LINK = re.compile(r"\]\((?:docs/)?docsite/rst/(\w+)\.rst\)")
# A module that only the collection itself uses says so at the end of its short description.
_INTERNAL_MODULE = re.compile(r"(?m)^\* :ansplugin:`\w+ module .*\\?\(internal\\?\)\n")
_MODULES = re.compile(r"(?ms)^Modules\n~+\n\n.*?\n(?=\n)")
# Labels of Ansible's own documentation that antsibull-docs refers to, and their pages.
_ANSIBLE_LABELS: Mapping[str, str] = {
    "action_plugins": "plugins/action.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}
_OTHER_MODULE = re.compile(
    r":ansplugin:`[^`]*?(\w+)\.(\w+)\.(\w+)#module>?`|ansible_collections\.(\w+)\.(\w+)\.(\w+)_module>"
)


def stage(folder: Path, binaries: Path) -> Path:
    """Write the source of the site below ``folder`` and return its place."""
    shutil.rmtree(folder, ignore_errors=True)
    collections = folder / "collections"
    copy_checkout(collections)
    source = folder / "source"
    for name in checkout_files():
        if _PAGES.fullmatch(name):
            _copy_page(name, source)
    site = REPOSITORY / "docs" / "docsite"
    shutil.copyfile(site / "conf.py", source / "conf.py")
    shutil.copyfile(site / "site" / "index.rst", source / "index.rst")
    plugins = source / "collection"
    # antsibull-docs wants a folder that nobody else can write to.
    plugins.mkdir(mode=0o700)
    _run(
        binaries, collections, "antsibull-docs", "collection", "--use-current",
        "--squash-hierarchy", "--fail-on-error", "--dest-dir", str(plugins), COLLECTION,
    )  # fmt: skip
    labels = {**_ANSIBLE_LABELS, **_other_modules(plugins)}
    (source / "ansible_devel.inv").write_bytes(_inventory(labels))
    # Guides, and the pages of modules, whose "See also" links to pages of the repository.
    for page in [*(plugins / "docsite").glob("*.rst"), *plugins.glob("*_module.rst")]:
        text = page.read_text(encoding="utf-8")
        page.write_text(_LINK.sub(r":doc:`\1</\2>`", text), encoding="utf-8")
    index = plugins / "index.rst"
    index.write_text(internal_last(index.read_text(encoding="utf-8")), encoding="utf-8")
    return source


def internal_last(index: str) -> str:
    """Return the index of the collection with its internal modules behind the others."""

    def parted(found: re.Match[str]) -> str:
        lines = "".join(_INTERNAL_MODULE.findall(found[0]))
        title = "Internal modules"
        section = f"\n{title}\n{'~' * len(title)}\n\n{lines}" if lines else ""
        return _INTERNAL_MODULE.sub("", found[0]) + section

    return _MODULES.sub(parted, index, count=1)


def _copy_page(name: str, source: Path) -> None:
    target = source / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".md"):
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        text = _GUIDE_LINK.sub(r"](/collection/docsite/\1.rst)", _FOLDER_LINK.sub(r"\1", text))
        text = DIAGRAM.sub(r"![\1](\2)\n", text)
        target.write_text(text, encoding="utf-8")
    else:
        shutil.copyfile(REPOSITORY / name, target)


def _other_modules(plugins: Path) -> dict[str, str]:
    """Return the labels and pages of the modules of other collections that the pages refer to."""
    found = {}
    for page in plugins.glob("*.rst"):
        for match in _OTHER_MODULE.finditer(page.read_text(encoding="utf-8")):
            namespace, name, module = filter(None, match.groups())
            if f"{namespace}.{name}" != COLLECTION:
                label = f"ansible_collections.{namespace}.{name}.{module}_module"
                found[label] = f"collections/{namespace}/{name}/{module}_module.html"
    return found


def _inventory(labels: Mapping[str, str]) -> bytes:
    """Return an inventory of Sphinx (version 2) with these labels."""
    head = (
        "# Sphinx inventory version 2\n# Project: Ansible\n# Version: devel\n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    rows = "".join(f"{name} std:label -1 {page} {name}\n" for name, page in sorted(labels.items()))
    return head.encode() + zlib.compress(rows.encode())


def build(folder: Path, binaries: Path) -> Path:
    """Build the site below ``folder`` and return its first page. Warnings are errors."""
    source = stage(folder, binaries)
    html = folder / "html"
    _run(
        binaries, folder / "collections", "sphinx-build", "-b", "html", "-W", "--keep-going", "-q",
        "-d", str(folder / "doctrees"), str(source), str(html),
    )  # fmt: skip
    return html / "index.html"


def _run(binaries: Path, collections: Path, program: str, *arguments: str) -> None:
    environment = {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_HOME": str(collections.parent / "ansible-home"),
    }
    argv = [str(binaries / program), *arguments]
    subprocess.run(argv, check=True, env=environment, cwd=collections)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binaries", type=Path, help="bin of the environment of docs.txt")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "docs")
    arguments = parser.parse_args()
    first = build(arguments.folder.absolute(), arguments.binaries.absolute())
    pages = sum(1 for _page in first.parent.rglob("*.html"))
    print(f"{pages} pages: {first}")


if __name__ == "__main__":
    main()
