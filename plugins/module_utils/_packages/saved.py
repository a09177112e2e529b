# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages that are saved on the node, in a repository of apt that only this node has.

They can be installed again after their repository has dropped them. apt itself reads the index of
the folder and checks the SHA-256 of each file, so that a saved package is installed like any other.
dnf would need metadata that only ``createrepo_c`` makes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .._core.errors import InputError, KubegpuError
from .._host.command import TIMED_OUT, Result
from .._host.files import FileState, glob_files, read_file, write_file
from .apt import Apt
from .host import Host

# Readable for the user _apt, as which apt reads it.
FOLDER = "/var/lib/kubegpu-packages"
SOURCE = "/etc/apt/sources.list.d/kubegpu-saved.sources"
ARCHIVES = "/var/cache/apt/archives"
_SOURCE_TEXT = """\
# Packages that kubegpu.nodes has saved before an upgrade. They came from repositories of this node.
Types: deb
URIs: file:{folder}
Suites: ./
Trusted: yes
"""
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+\Z")
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+:~-]*\Z")
# Seconds for one package, for all of them, and for copies of hundreds of MiB.
_DOWNLOAD, _LONGEST, _COPY = 600, 1800, 600


@dataclass(frozen=True)
class Saved:
    """A package file of the folder, with its paragraph of the index."""

    name: str
    version: str
    file: str
    text: str


def parse_index(text: str) -> tuple[Saved, ...]:
    """Return the packages of an index."""
    found = []
    for paragraph in re.split(r"\n\n+", text.strip()):
        fields = dict(re.findall(r"^([A-Z][A-Za-z0-9-]*): (.*)$", paragraph, re.MULTILINE))
        if {"Package", "Version", "Filename"} <= {*fields}:
            file = fields["Filename"].rpartition("/")[2]
            found.append(Saved(fields["Package"], fields["Version"], file, paragraph))
    return tuple(found)


def file_name(name: str, version: str) -> str:
    """Return the name of a file; apt decodes ``%`` in those of an index."""
    return f"{name}_{version.replace(':', '-')}.deb"


def paragraph(control: str, file: str, size: str, sha256: str) -> str:
    """Return the paragraph of the index for a package with these control fields."""
    return f"{control.strip()}\nFilename: ./{file}\nSize: {size}\nSHA256: {sha256}"


@dataclass(frozen=True)
class Difference:
    """The saved packages before and after, and those that are to be had nowhere.

    :param stale: whether a run that was killed, or somebody else, left other files in the folder,
        or an index that apt has not read.
    """

    before: Mapping[str, str]
    after: Mapping[str, str]
    lost: tuple[str, ...] = ()
    stale: bool = False

    @property
    def changed(self) -> bool:
        return self.stale or dict(self.before) != dict(self.after)


def save_packages(
    host: Host, packages: Mapping[str, str | None], *, check_mode: bool
) -> Difference:
    """Make the folder have these packages and no others.

    :returns: what was, or would be, saved and removed.
    :raises KubegpuError: the package manager is not apt, a version is not exact, or a command
        failed.
    """
    wanted = _exact(packages)
    folder = _Folder(host)
    before, stale = folder.read()
    if not wanted and not before and not stale:
        # Whatever the package manager is.
        return Difference({}, {})
    manager = host.manager
    if not isinstance(manager, Apt):
        raise InputError(
            "Packages are saved with apt only.",
            next_step="Leave state: saved out on this node. A repository that keeps earlier "
            "versions, such as a mirror of your own, serves the same purpose.",
        )
    if stale and not check_mode:
        # Otherwise apt would offer files that are not there.
        folder.write(before)
    kept = [one for one in before if wanted.get(one.name) == one.version]
    names = {one.name for one in kept}
    missing = {name: version for name, version in wanted.items() if name not in names}
    offered = manager.available(sorted(wanted))
    # A run can be killed before apt has read the index that it wrote.
    unread = any(one.version not in offered.get(one.name, ()) for one in kept)
    downloads = {
        name: version for name, version in missing.items() if version in offered.get(name, ())
    }
    # apt has verified them when it downloaded them. What a repository offers is verified again.
    copies = {
        name: path
        for name in missing
        if name not in downloads and (path := cached(name, missing[name]))
    }
    earlier = {one.name: one.version for one in before}
    after = {name: wanted[name] for name in sorted({*names, *copies, *downloads})}
    if earlier != after and not check_mode:
        fresh = folder.fetch(downloads, copies, missing) if downloads or copies else []
        folder.write([*kept, *fresh])
        after = {one.name: one.version for one in sorted((*kept, *fresh), key=lambda one: one.name)}
    elif unread and not check_mode:
        folder.refresh()
    return Difference(earlier, after, tuple(sorted({*wanted} - {*after})), stale or unread)


def cached(name: str, version: str) -> str:
    """Return apt's own copy of a package; empty if it has none."""
    found = glob_files(f"{ARCHIVES}/{name}_{version.replace(':', '%3a')}_*.deb")
    return found[0] if found else ""


def _exact(packages: Mapping[str, str | None]) -> dict[str, str]:
    found = {}
    for name, version in packages.items():
        if not (_NAME.match(name) and _VERSION.match(version or "")):
            raise InputError(
                f"packages: {name} {version} is not a package with an exact version.",
                next_step="Give the full version with its packaging revision, such as 1.20.0-1.",
            )
        found[name] = str(version)
    return found


class _Folder:
    """The folder of the saved packages on the node."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._index = f"{FOLDER}/Packages"
        self._partial = f"{FOLDER}/partial"

    def read(self) -> tuple[list[Saved], bool]:
        """Return the packages of the index whose files are there, and whether others are."""
        content = read_file(self._index).content or b""
        listed = parse_index(content.decode("utf-8", "replace"))
        files = {_base(path) for path in glob_files(f"{FOLDER}/*")}
        found = [one for one in listed if one.file in files]
        expected = {one.file for one in listed} | ({"Packages"} if listed else set())
        return found, files != expected or bool(listed) != read_file(SOURCE).exists

    def write(self, entries: Sequence[Saved]) -> None:
        """Write index and source, and remove other files, in this order."""
        if entries:
            ordered = sorted(entries, key=lambda one: one.name)
            _write(self._index, "\n\n".join(one.text for one in ordered) + "\n")
            _write(SOURCE, _SOURCE_TEXT.format(folder=FOLDER))
            self.refresh()
        else:
            write_file(FileState(SOURCE))
        names = {"Packages", *(one.file for one in entries)} if entries else set()
        old = [path for path in glob_files(f"{FOLDER}/*") if _base(path) not in names]
        if old:
            self._do("rm", "-rf", "--", *old)
        if not entries:
            self._do("rm", "-rf", "--", FOLDER)

    def fetch(
        self, downloads: Mapping[str, str], copies: Mapping[str, str], versions: Mapping[str, str]
    ) -> list[Saved]:
        """Put files into the folder, without those that cannot be had; return their entries.

        :param downloads: versions by name.
        :param copies: files to copy, by name.
        :param versions: the version that each package has to have.
        :raises KubegpuError: nothing at all could be downloaded or copied, or a command failed.
        """
        self._do("mkdir", "-p", "-m", "0755", "--", FOLDER, self._partial)
        if copies:
            self._do("cp", "--", *copies.values(), self._partial, timeout=_COPY)
        if downloads:
            self._download([f"{name}={version}" for name, version in sorted(downloads.items())])
        return [self._take(path, versions) for path in glob_files(f"{self._partial}/*.deb")]

    def _download(self, names: Sequence[str]) -> None:
        """Download packages, without those that their repository has dropped.

        :raises KubegpuError: a download failed for another reason.
        """
        # For both attempts: an upgrade waits for it with nodes out of service.
        deadline = time.monotonic() + min(_DOWNLOAD * len(names), _LONGEST)
        if self._download_all(names, deadline):
            return
        # Lists can be older than the repository: the others are to be had.
        for one in names:
            self._download_all([one], deadline)

    def _download_all(self, names: Sequence[str], deadline: float) -> bool:
        """Download packages; return whether the repository has all of them."""
        # apt-get writes to its working directory.
        script = 'cd "$1" && shift && exec apt-get -qq download "$@"'
        argv = ("sh", "-c", script, "sh", self._partial, *names)
        left = max(1, round(deadline - time.monotonic()))
        answer = self._host.manager.run(argv, timeout=left)
        if not answer.ok and "404" in answer.last_output():
            return False
        _check(("apt-get", "download"), answer)
        return True

    def _take(self, path: str, versions: Mapping[str, str]) -> Saved:
        """Move a file of the right version to its place; return its entry."""
        control = self._do("dpkg-deb", "--field", path)
        fields = dict(re.findall(r"^(Package|Version): (.*)$", control, re.MULTILINE))
        name, version = fields.get("Package", ""), fields.get("Version", "")
        if versions.get(name) != version:
            raise KubegpuError(
                f"{_base(path)} is {name} {version}, which was not to be saved.",
                next_step="Run apt-get clean, and run again.",
            )
        file = file_name(name, version)
        size = self._do("stat", "-c", "%s", "--", path).strip()
        digest = self._do("sha256sum", "--", path).lstrip("\\").split()[0]
        self._do("mv", "-f", "--", path, f"{FOLDER}/{file}")
        return Saved(name, version, file, paragraph(control, file, size, digest))

    def refresh(self) -> None:
        """Let apt read the index of the folder, and of no other repository."""
        argv = (
            *("apt-get", "-qq", "update", "-o", f"Dir::Etc::sourcelist={SOURCE}"),
            *("-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=0"),
        )
        _check(argv, self._host.run_unlocked(argv, timeout=120))

    def _do(self, *argv: str, timeout: int = 60) -> str:
        return _check(argv, self._host.manager.run(argv, timeout=timeout))


def _check(argv: Sequence[str], answer: Result) -> str:
    if not answer.ok:
        failed = f"failed with status {answer.rc}"
        failed = "did not end in time" if answer.rc == TIMED_OUT else failed
        raise KubegpuError(
            f"Packages could not be saved: {argv[0]} {failed}.",
            evidence=answer.last_output(),
            next_step=f"Check the message. {FOLDER} needs space for the packages.",
        )
    return answer.stdout


def _write(path: str, text: str) -> None:
    if read_file(path).content != text.encode():
        write_file(FileState(path, text.encode(), 0o644))


def _base(path: str) -> str:
    return path.rpartition("/")[2]
