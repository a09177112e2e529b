# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the documentation site: ``make docs``. Nothing is read from the network.

Guides, modules, filters and roles come from antsibull-docs. The pages of ``docs/`` and the READMEs
of the roles are copied as they are, to the same relative places, so that their links work in the
repository and on the site. The first page and the sidebar are docs/README.md: a heading of it is a
group, and the links below it are its pages.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import shutil
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.tools import links
from tests.tools.environments import REPOSITORY, checkout_files, copy_checkout
from tests.tools.picture import DIAGRAM

COLLECTION = "kubegpu.nodes"
INDEX = "docs/README.md"
# The address of galaxy.yml, under which modules name the pages of the repository.
REPOSITORY_URL = "https://kubegpu.example/nodes/blob/main/"
_PAGES = re.compile(
    r"README\.md|CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md|LICENSE|docs/.*|roles/[^/]+/(?:README\.md|files/.*)"
    r"|playbooks/.*|tests/bench/reference/.*"
)
# A link of a guide to a page of the repository, or to a picture in it.
_LINK = re.compile(r"`([^`<]+) <([^`>:#]+)\.(?:md|rst)(#[^`>]*)?>`__")
_SEE_ALSO = re.compile(r"`([^`<]+) <" + re.escape(REPOSITORY_URL) + r"([^>#]+)\.md(?:#[^>]*)?>`__?")
_PICTURE = re.compile(r"^( *\.\. (?:image|figure):: )(\.\S+)", re.MULTILINE)
_GUIDES = posixpath.join("collection", "docsite")
# A folder is no page: its name stays, without a link.
_FOLDER_LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)*playbooks/examples\)")
# A guide is a page of the collection's own documentation.
_GUIDE_LINK = re.compile(r"\]\((?:docs/)?docsite/rst/(\w+)\.rst\)")
# A module that only the collection itself uses says so at the end of its short description.
_INTERNAL_MODULE = re.compile(r"(?m)^\* :ansplugin:`(\w+) module .*\\?\(internal\\?\)\n")
# The first page of the site.
_INDEX_LINK = re.compile(r"\]\(([^)#\s]*README\.md)(#[^)]*)?\)")
_GROUP = re.compile(r"^## (.+)$", re.MULTILINE)
_MODULE_ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
# Labels of Ansible's own documentation that antsibull-docs refers to, and their pages.
_ANSIBLE_LABELS: Mapping[str, str] = {
    "action_plugins": "plugins/action.html",
    "ansible_collections.ansible.builtin.default_callback": (
        "collections/ansible/builtin/default_callback.html"
    ),
    "ansible_configuration_settings": "reference_appendices/config.html",
    "callback_plugins": "plugins/callback.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}
_OTHER_PLUGIN = re.compile(
    r":ansplugin:`[^`]*?(\w+)\.(\w+)\.(\w+)#(module|lookup|filter)>?`"
    r"|ansible_collections\.(\w+)\.(\w+)\.(\w+)_(module|lookup|filter)>"
)


def stage(folder: Path, binaries: Path) -> Path:
    """Write the source of the site below ``folder`` and return its place."""
    shutil.rmtree(folder, ignore_errors=True)
    collections = folder / "collections"
    copy_checkout(collections)
    source = folder / "source"
    index = (REPOSITORY / INDEX).read_text(encoding="utf-8")
    for name in checkout_files():
        if _PAGES.fullmatch(name):
            _copy_page(name, source, index)
    site = REPOSITORY / "docs" / "docsite"
    shutil.copyfile(site / "conf.py", source / "conf.py")
    shutil.copytree(site / "site", source / "static")
    (source / "index.md").write_text(_index(index), encoding="utf-8")
    plugins = source / "collection"
    # antsibull-docs wants a folder that nobody else can write to.
    plugins.mkdir(mode=0o700)
    _run(
        binaries, collections, "antsibull-docs", "collection", "--use-current",
        "--squash-hierarchy", "--fail-on-error", "--dest-dir", str(plugins), COLLECTION,
    )  # fmt: skip
    labels = {**_ANSIBLE_LABELS, **_other_plugins(plugins)}
    (source / "ansible_devel.inv").write_bytes(_inventory(labels))
    for guide in (plugins / "docsite").glob("*.rst"):
        guide.write_text(guide_of_site(guide.read_text(encoding="utf-8")), encoding="utf-8")
    for page in plugins.glob("*_module.rst"):
        text = page.read_text(encoding="utf-8")
        page.write_text(_SEE_ALSO.sub(r":doc:`\1</\2>`", text), encoding="utf-8")
    overview = plugins / "index.rst"
    text = overview.read_text(encoding="utf-8")
    internal = _INTERNAL_MODULE.findall(text)
    text = without_modules(text, internal).replace(COLLECTION.title(), COLLECTION)
    overview.write_text(text, encoding="utf-8")
    for name in internal:
        (plugins / f"{name}_module.rst").unlink()
    for page in plugins.glob("*.rst"):
        text = page.read_text(encoding="utf-8")
        page.write_text(without_links(text, internal), encoding="utf-8")
    return source


def without_modules(index: str, names: Sequence[str]) -> str:
    """Return the index of the collection without some modules."""
    index = _INTERNAL_MODULE.sub(lambda found: "" if found[1] in names else found[0], index)
    for name in names:
        index = index.replace(f"    {name}_module\n", "")
    return index


def without_links(text: str, names: Sequence[str]) -> str:
    """Return a page whose links to some modules are their names."""
    for name in names:
        label = rf":ref:`[^`]*<ansible_collections\.{re.escape(COLLECTION)}\.{name}_module[^`]*`"
        plugin = rf":ansplugin:`[^`]*{re.escape(COLLECTION)}\.{name}#module[^`]*`"
        text = re.sub(f"{label}|{plugin}", f"``{COLLECTION}.{name}``", text)
    return text


def guide_of_site(text: str) -> str:
    """Return a guide with the links of the site, which has guides in another folder."""

    def link(found: re.Match[str]) -> str:
        words, path, anchor = found.groups()
        # The text of a link may be on two lines of an indented list.
        words = " ".join(words.split())
        page = posixpath.normpath(posixpath.join(links.GUIDES, path))
        if posixpath.dirname(page) == links.GUIDES:
            page = posixpath.join(_GUIDES, posixpath.basename(page))
        page = "index" if f"{page}.md" == INDEX else page
        if anchor:
            return f"`{words} <{posixpath.relpath(page, _GUIDES)}.html{anchor}>`__"
        return f":doc:`{words}</{page}>`"

    def picture(found: re.Match[str]) -> str:
        return f"{found[1]}/{posixpath.normpath(posixpath.join(links.GUIDES, found[2]))}"

    return _PICTURE.sub(picture, _LINK.sub(link, text))


def _index(text: str) -> str:
    """Return the first page of the site: docs/README.md, and a group of the sidebar by heading."""
    _, *parts = _GROUP.split(text)
    groups = []
    for title, part in zip(parts[::2], parts[1::2]):
        pages = [_site_page(link) for link in links.links(INDEX, part) if not link.startswith("#")]
        if title == "Reference":
            pages.append("Modules, filters, roles <collection/index>")
        groups.append(
            "\n".join(
                [
                    *("```{toctree}", ":hidden:", ":maxdepth: 1", f":caption: {title}", ""),
                    *dict.fromkeys(pages),
                    *("```", ""),
                ]
            )
        )
    text = re.sub(r"\]\(([^)#:]+)", lambda found: f"](/{_site_page(found[1], ends=True)}", text)
    text = _MODULE_ROW.sub(r"| [\1](/collection/\1_module.rst) |", text)
    return "\n".join([text.replace("# Documentation", f"# {COLLECTION}", 1), *groups])


def _site_page(link: str, ends: bool = False) -> str:
    """Return the page of the site that a link of docs/README.md leads to.

    :param ends: with its suffix.
    """
    page = posixpath.normpath(posixpath.join(posixpath.dirname(INDEX), link.partition("#")[0]))
    if posixpath.dirname(page) == links.GUIDES:
        page = posixpath.join(_GUIDES, posixpath.basename(page))
    return page if ends else posixpath.splitext(page)[0]


def _copy_page(name: str, source: Path, index: str) -> None:
    target = source / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".md"):
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        text = _GUIDE_LINK.sub(r"](/collection/docsite/\1.rst)", _FOLDER_LINK.sub(r"\1", text))
        text = _INDEX_LINK.sub(lambda found: _first_page(name, found), text)
        text = DIAGRAM.sub(r"![\1](\2)\n", text)
        if name.startswith("roles/") and f"](../{name})" not in index:
            # An internal role: other pages lead there, the index does not.
            text = f"---\norphan: true\n---\n{text}"
        target.write_text(text, encoding="utf-8")
    else:
        shutil.copyfile(REPOSITORY / name, target)


def _first_page(name: str, found: re.Match[str]) -> str:
    page = posixpath.normpath(posixpath.join(posixpath.dirname(name), found[1]))
    return f"](/index.md{found[2] or ''})" if page == INDEX else found[0]


def _other_plugins(plugins: Path) -> dict[str, str]:
    """Return the labels and pages of other collections' plugins that the pages refer to."""
    found = {}
    for page in plugins.glob("*.rst"):
        for match in _OTHER_PLUGIN.finditer(page.read_text(encoding="utf-8")):
            namespace, name, plugin, kind = filter(None, match.groups())
            if f"{namespace}.{name}" != COLLECTION:
                label = f"ansible_collections.{namespace}.{name}.{plugin}_{kind}"
                found[label] = f"collections/{namespace}/{name}/{plugin}_{kind}.html"
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
    # Pages of an earlier build would hide that a link is broken.
    shutil.rmtree(html, ignore_errors=True)
    _run(
        binaries, folder / "collections", "sphinx-build", "-b", "html", "-W", "--keep-going", "-q",
        "-d", str(folder / "doctrees"), str(source), str(html),
    )  # fmt: skip
    broken = sorted(links.broken_on_site(html))
    if broken:
        raise SystemExit("broken links of the site:\n" + "\n".join(broken))
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
