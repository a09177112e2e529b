# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links of the pages, in the three forms in which they are read: repository, Galaxy, site.

In the repository links are relative. Galaxy shows README.md alone, so ``make build`` makes its
links absolute. ``make docs`` checks the pages of the site. ``python -m tests.tools.links`` makes
links of guides relative that name the address of the repository.
"""

from __future__ import annotations

import posixpath
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path

from tests.tools.environments import REPOSITORY, checkout_files

# What is read: pages in Markdown, and the guides.
PAGES = re.compile(
    r"(?:README|CONTRIBUTING|SECURITY)\.md|docs/[^/]+\.md|roles/[^/]+/README\.md"
    r"|docs/docsite/rst/\w+\.rst"
)
GUIDES = "docs/docsite/rst"
_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2[ ]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")
_MARKDOWN = re.compile(r"(!?)\[([^\]]*)\]\(([^()\s]+)\)")
_RST = re.compile(r"`[^`<]+<([^`>\s]+)>`__?|^ *\.\. (?:image|figure):: (\S+)", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//")


def address() -> str:
    """Return the address of the repository in galaxy.yml."""
    # nox, which has no parser of YAML, builds the collection.
    text = (REPOSITORY / "galaxy.yml").read_text(encoding="utf-8")
    (found,) = re.findall(r"^repository: (\S+)$", text, re.MULTILINE)
    return str(found)


def links(name: str, text: str) -> list[str]:
    """Return the targets of the links and pictures of a page."""
    if name.endswith(".rst"):
        return [found[1] or found[2] for found in _RST.finditer(text)]
    # A link may have code as its text, but not the other way round.
    text = _CODE.sub(lambda code: code[0] if "](" not in code[0] else "", _FENCE.sub("", text))
    return [found[3] for found in _MARKDOWN.finditer(text)]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page in Markdown, as GitHub makes them of its headings."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
        base = anchor = words.replace(" ", "-")
        number = 0
        while anchor in found:
            number += 1
            anchor = f"{base}-{number}"
        found.add(anchor)
    return found


def broken(pages: Mapping[str, str], files: set[str]) -> list[str]:
    """Return the links that lead nowhere in the repository, with their pages.

    :param files: all files of the project.
    """
    folders = {parent.as_posix() for name in files for parent in Path(name).parents}
    found = []
    for name, text in pages.items():
        for link in links(name, text):
            if link.startswith(address()):
                found.append(f"{name}: {link}: use a relative link")
            if _ABSOLUTE.match(link):
                continue
            path, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            target = target if path else name
            if target not in files and target not in folders:
                found.append(f"{name}: {link}: there is no {target}")
            elif not anchor or not target.endswith(".md") or target not in pages:
                continue
            elif anchor not in anchors(pages[target]):
                found.append(f"{name}: {link}: {target} has no such heading")
    return found


def pages() -> dict[str, str]:
    """Return the texts of the pages by their names."""
    return {
        name: (REPOSITORY / name).read_text(encoding="utf-8")
        for name in checkout_files()
        if PAGES.fullmatch(name)
    }


def for_galaxy(text: str, repository: str) -> str:
    """Return README.md with absolute links: Galaxy shows it without the other files."""

    def absolute(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if _ABSOLUTE.match(target) or target.startswith("#"):
            return found[0]
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/main/{target})"

    return _MARKDOWN.sub(absolute, text)


def relative(text: str, repository: str) -> str:
    """Return a guide with relative links to the pages of the repository."""

    def one(found: re.Match[str]) -> str:
        return f"<{posixpath.relpath(found[1], GUIDES)}{found[2] or ''}>"

    return re.sub(re.escape(f"<{repository}/blob/main/") + r"([^>#]+)(#[^>]*)?>", one, text)


class _Page(HTMLParser):
    """What a page of the site refers to, and the ids that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.ids |= {str(known[key]) for key in ("id", "name") if known.get(key)}
        target = known.get("href" if tag in ("a", "link") else "src")
        if target and not _ABSOLUTE.match(target):
            self.targets.append(target)


def broken_on_site(html: Path) -> Iterator[str]:
    """Yield the links of the pages below ``html`` that lead nowhere."""
    read: dict[Path, _Page] = {}
    for path in html.rglob("*.html"):
        read[path.resolve()] = page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    for path, page in sorted(read.items()):
        for target in dict.fromkeys(page.targets):
            parts = urllib.parse.urlsplit(target)
            place = (path.parent / urllib.parse.unquote(parts.path)).resolve()
            place = place if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not place.exists() or (place in read and anchor not in read[place].ids):
                yield f"{path.relative_to(html.resolve())}: {target}"


def main() -> None:
    repository = address()
    for path in sorted((REPOSITORY / GUIDES).glob("*.rst")):
        text = path.read_text(encoding="utf-8")
        if relative(text, repository) != text:
            path.write_text(relative(text, repository), encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
