# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links of the pages lead somewhere, and the index has all pages."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tests.tools import links
from tests.tools.environments import REPOSITORY, checkout_files

FILES = set(checkout_files())
PAGES = links.pages()
INDEX = PAGES["docs/README.md"]


def test_the_links_of_the_pages_work_in_the_repository() -> None:
    assert len(PAGES) > 60
    assert links.broken(PAGES, FILES) == []


def test_a_broken_link_would_be_seen() -> None:
    text = "# A\n\n[a](b.md#a) [b](b.md#none) ![c](c.svg) `[d](d)` [e](e/) [f](https://x.example)\n"
    guide = f"`a <../../b.md>`__ `b <{links.address()}/blob/main/docs/b.md>`__\n.. image:: x.png\n"
    pages = {"docs/a.md": text, "docs/b.md": "# A\n# A\n", "docs/docsite/rst/g.rst": guide}
    assert links.broken(pages, {*pages, "docs/e/f.md"}) == [
        "docs/a.md: b.md#none: docs/b.md has no such heading",
        "docs/a.md: c.svg: there is no docs/c.svg",
        f"docs/docsite/rst/g.rst: {links.address()}/blob/main/docs/b.md: use a relative link",
        "docs/docsite/rst/g.rst: x.png: there is no docs/docsite/rst/x.png",
    ]
    assert links.anchors("# A `b`: c, d_e\n```\n# no\n```\n# [x](y) z\n") == {"a-b-c-d_e", "x-z"}


def test_a_guide_gets_relative_links() -> None:
    text = (
        "`a <https://x.example/blob/main/docs/a.md#b>`__, `c <https://x.example/blob/main/C.md>`__"
    )
    assert links.relative(text, "https://x.example") == (
        "`a <../../a.md#b>`__, `c <../../../C.md>`__"
    )


def test_the_links_of_the_readme_are_absolute_on_galaxy() -> None:
    """Galaxy shows README.md alone."""
    text = links.for_galaxy(PAGES["README.md"], "https://repository.example")
    found = links.links("README.md", text)
    assert len(found) > 15 and len(found) == len(links.links("README.md", PAGES["README.md"]))
    for link in found:
        kind, _, path = link.removeprefix("https://repository.example/").partition("/main/")
        assert kind == ("raw" if path.endswith(".svg") else "blob"), link
        assert path.partition("#")[0] in FILES


def test_the_readme_is_short() -> None:
    text = PAGES["README.md"].partition("-->")[2]
    assert len(text.split()) <= 1000


def test_a_broken_link_of_the_site_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="b.html#y"></a><a href="#x"></a><img src="c">'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#x"></a><a href="https://x.example/"></a>')
    assert list(links.broken_on_site(tmp_path)) == ["a.html: b.html#y", "a.html: c"]


def test_the_index_has_every_page() -> None:
    named = {link.partition("#")[0] for link in links.links("docs/README.md", INDEX)}
    wanted = {Path(name).name for name in PAGES if re.fullmatch(r"docs/[^/]+\.md", name)}
    assert sorted(wanted - named - {"README.md"}) == []
    guides = sorted(Path(name).stem for name in PAGES if name.startswith(links.GUIDES))
    assert [name for name in guides if f"docsite/rst/{name}.rst" not in named] == []
    extra = yaml.safe_load((REPOSITORY / "docs/docsite/extra-docs.yml").read_text(encoding="utf-8"))
    listed = [name for section in extra["sections"] for name in section["toctree"]]
    assert sorted(listed) == guides, "docs/docsite/extra-docs.yml"


def test_the_index_names_all_that_there_is() -> None:
    """Public modules and roles in its tables, internal ones below; playbooks in their own page."""
    public, _, internal = INDEX.partition("Internal parts")
    files = [Path(name) for name in FILES]
    modules = [path.stem for path in files if path.parent == Path("plugins/modules")]
    roles = {path.parts[1] for path in files if path.parts[0] == "roles"}
    for name in modules:
        assert (public.count(f"| `{name}` |"), internal.count(f"`{name}`")) in ((1, 0), (0, 1)), (
            name
        )
    for name in roles:
        row = f"| [{name}](../roles/{name}/README.md) |"
        assert (public.count(row), internal.count(f"`{name}`")) in ((1, 0), (0, 1)), name
    playbooks = [path.stem for path in files if path.parent == Path("playbooks")]
    assert [name for name in playbooks if f"`{name}`" not in PAGES["docs/playbooks.md"]] == []
