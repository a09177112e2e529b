# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages are saved on the node. Files are real ones; apt and dpkg-deb are stand-ins.

tests/integration/packages/test_packages_live.py has the real ones.
"""

from __future__ import annotations

import hashlib
import itertools
import subprocess

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    InputError,
    KubegpuError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages import saved
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.apt import Apt
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.dnf import Dnf
from ansible_collections.kubegpu.nodes.plugins.module_utils._packages.host import Host
from ansible_collections.kubegpu.nodes.plugins.modules import package_set
from tests.unit.module_process import predicted, run_module

OLD = {"nvidia-driver": "550.163.01-1", "libcuda1": "1:550.163.01-1"}
NEW = {"nvidia-driver": "580.126.09-1", "libcuda1": "1:580.126.09-1"}


def control(name, version):
    return f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nDescription: x\n more\n"


class Node:
    """apt with a repository; a package file is its control fields."""

    def __init__(self, folder):
        self.repository = {name: [version] for name, version in OLD.items()}
        self.downloaded, self.refreshed, self.fails = [], 0, ""
        # The saved packages that apt knows of, and the time limits of downloads.
        self.read, self.limits = {}, []
        # What a download fails with, by name.
        self.errors = {}
        # What the repository has dropped since its lists were read.
        self.dropped = ()
        self.sources = folder / "sources"

    def __call__(self, argv, timeout=60, environment=None):
        words = list(argv)
        if self.fails and self.fails in words:
            return Result(100, "", "E: No space left on device")
        if words[0] == "apt-cache":
            offers = (self.repository, self.read)
            lines = (f"{one} | {version} | x\n" for one in words[2:] for offer in offers
                     for version in offer.get(one, ()))  # fmt: skip
            return Result(0, "".join(lines), "")
        if words[0] == "dpkg-deb":
            with open(words[2], encoding="utf-8") as file:
                return Result(0, file.read(), "")
        if words[:3] == ["apt-get", "-qq", "update"]:
            assert f"Dir::Etc::sourcelist={saved.SOURCE}" in words
            self.refreshed += 1
            index = (self.folder / "Packages").read_text(encoding="utf-8")
            self.read = {one.name: [one.version] for one in saved.parse_index(index)}
            return Result(0, "", "")
        if words[0] == "sh":
            self.limits.append(timeout)
            for one in words[5:]:
                name, version = one.split("=")
                if name in self.dropped:
                    return Result(100, "", f"E: Failed to fetch {name}: 404  Not Found")
                if name in self.errors:
                    return self.errors[name]
                assert version in self.repository[name]
                self.downloaded.append(one)
                self.put(words[4], name, version)
            return Result(0, "", "")
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    @staticmethod
    def put(folder, name, version):
        path = f"{folder}/{name}_{version.replace(':', '%3a')}_amd64.deb"
        with open(path, "w", encoding="utf-8") as file:
            file.write(control(name, version))


@pytest.fixture
def node(tmp_path, monkeypatch):
    made = Node(tmp_path)
    for name, path in (("FOLDER", "saved"), ("ARCHIVES", "archives"), ("SOURCE", "x.sources")):
        monkeypatch.setattr(saved, name, str(tmp_path / path))
    (tmp_path / "archives").mkdir()
    made.folder, made.source = tmp_path / "saved", tmp_path / "x.sources"
    made.archives = tmp_path / "archives"
    monkeypatch.setattr(package_set, "module_runner", lambda _module: made)
    return made


def save(packages, **options):
    given = {"name": "x", "state": "saved", "package_manager": "apt", "packages": packages}
    return predicted(package_set.main, given, **options)


def there(node):
    return sorted(path.name for path in node.folder.iterdir())


def test_packages_are_saved_once_replaced_and_removed(node):
    answer = save(OLD)
    assert answer["changed"] and answer["not_available"] == []
    assert answer["diff"][0]["after"] == "libcuda1 1:550.163.01-1\nnvidia-driver 550.163.01-1\n"
    names = ["libcuda1_1-550.163.01-1.deb", "nvidia-driver_550.163.01-1.deb"]
    assert there(node) == ["Packages", *names]
    entries = saved.parse_index((node.folder / "Packages").read_text(encoding="utf-8"))
    assert {one.name: one.version for one in entries} == OLD
    for one in entries:
        # apt refuses a file that is not the one of the index.
        content = (node.folder / one.file).read_bytes()
        assert f"SHA256: {hashlib.sha256(content).hexdigest()}" in one.text
        assert f"Size: {len(content)}" in one.text and " more\n" in one.text
    assert f"URIs: file:{node.folder}\n" in node.source.read_text(encoding="utf-8")
    assert node.refreshed == 1

    # The repository has dropped them.
    node.repository = {name: [version] for name, version in NEW.items()}
    again = save(OLD)
    assert not again["changed"] and again["not_available"] == [] and node.refreshed == 1
    assert save(NEW)["changed"]
    assert {one.version for one in saved.parse_index((node.folder / "Packages").read_text())} == {
        *NEW.values()
    }
    assert len(there(node)) == 3 and len(node.downloaded) == 4
    assert save({})["changed"]
    assert not node.folder.exists() and not node.source.exists()
    assert not save({})["changed"]


def test_what_apt_has_in_its_cache_is_copied(node):
    node.repository = {}
    node.put(node.archives, "libcuda1", OLD["libcuda1"])
    answer = save(OLD)
    assert answer["not_available"] == ["nvidia-driver"] and not node.downloaded
    assert set(answer["packages"]) == {"libcuda1"}
    assert there(node) == ["Packages", "libcuda1_1-550.163.01-1.deb"]


def test_what_is_to_be_had_nowhere_leaves_nothing_behind(node):
    node.repository = {}
    answer = save(OLD)
    assert not answer["changed"] and answer["not_available"] == sorted(OLD)
    assert not node.folder.exists() and not node.source.exists()


def test_what_a_repository_has_dropped_since_its_lists_were_read(node):
    node.dropped = ("libcuda1",)
    given = {"name": "x", "state": "saved", "package_manager": "apt", "packages": OLD}
    # Check mode downloads nothing, and cannot know.
    answer = run_module(package_set.main, given)
    assert answer["not_available"] == ["libcuda1"] and set(answer["packages"]) == {"nvidia-driver"}
    assert there(node) == ["Packages", "nvidia-driver_550.163.01-1.deb"]
    node.dropped = tuple(OLD)
    again = run_module(package_set.main, given)
    assert not again["changed"] and again["not_available"] == ["libcuda1"]


def test_a_download_that_fails_otherwise_is_no_package_that_was_dropped(node):
    node.dropped = ("libcuda1",)
    node.errors = {"nvidia-driver": Result(100, "", "E: Could not resolve the proxy")}
    given = {"name": "x", "state": "saved", "package_manager": "apt", "packages": OLD}
    answer = run_module(package_set.main, given)
    assert answer["failed"] and "apt-get failed with status 100" in answer["cause"]
    assert "resolve the proxy" in answer["evidence"] and not node.source.exists()
    node.errors = {"nvidia-driver": Result(124, "", "")}
    assert "apt-get did not end in time" in run_module(package_set.main, given)["cause"]


def test_all_downloads_together_have_one_time_limit(node, monkeypatch):
    """The Lease of an upgrade lasts as long."""
    node.dropped = ("libcuda1",)
    now = itertools.count(0, 700)
    monkeypatch.setattr(saved.time, "monotonic", lambda: next(now))
    saved.save_packages(Host(lambda: Apt(node), 0), OLD, check_mode=False)
    assert node.limits == [500, 1, 1]


def test_what_a_repository_offers_is_downloaded_and_not_copied(node):
    node.put(node.archives, "libcuda1", OLD["libcuda1"])
    save(OLD)
    assert len(node.downloaded) == 2


@pytest.mark.parametrize("left", ["partial", "file", "index", "source", "lists"])
def test_what_a_killed_run_left_is_repaired(node, left):
    save(OLD)
    # Only what is saved is left, which apt has to know.
    node.repository = {}
    if left == "partial":
        (node.folder / "partial").mkdir()
        node.put(node.folder / "partial", "other", "1")
    elif left == "file":
        node.put(node.folder, "other", "1")
    elif left == "index":
        # Somebody removed a file that apt would offer.
        node.repository = {name: [version] for name, version in OLD.items()}
        (node.folder / "nvidia-driver_550.163.01-1.deb").unlink()
    else:
        # The run ended before apt has read the index.
        node.read = {}
        if left == "source":
            node.source.unlink()
    assert save(OLD)["changed"]
    assert len(there(node)) == 3 and node.read.keys() == OLD.keys() and node.source.exists()
    refreshed = node.refreshed
    assert not save(OLD)["changed"] and node.refreshed == refreshed


def test_a_failure_names_command_and_message_and_keeps_what_was_saved(node):
    save(OLD)
    before = there(node)
    node.repository = {name: [version] for name, version in NEW.items()}
    node.fails = "dpkg-deb"
    given = {"name": "x", "state": "saved", "package_manager": "apt", "packages": NEW}
    answer = run_module(package_set.main, given)
    assert answer["failed"] and "dpkg-deb failed with status 100" in answer["cause"]
    assert "No space left" in answer["evidence"]
    assert [name for name in there(node) if name != "partial"] == before


def test_a_file_of_another_version_is_not_taken(node):
    node.repository = {}
    node.put(node.archives, "libcuda1", OLD["libcuda1"])
    (path,) = node.archives.iterdir()
    path.write_text(control("libcuda1", "1:1"), encoding="utf-8")
    host = Host(lambda: Apt(node), 0)
    with pytest.raises(KubegpuError, match="libcuda1 1:1, which was not to be saved"):
        saved.save_packages(host, OLD, check_mode=False)
    assert not node.source.exists()


@pytest.mark.parametrize("packages", [{"a": None}, {"abc": "1.*"}, {"../x": "1"}, {"abc": "../1"}])
def test_versions_are_exact(node, packages):
    with pytest.raises(InputError, match="not a package with an exact version"):
        saved.save_packages(Host(lambda: Apt(node), 0), packages, check_mode=False)


def test_other_package_managers_are_refused(node):
    host = Host(lambda: Dnf(node), 0)
    with pytest.raises(InputError, match="with apt only"):
        saved.save_packages(host, OLD, check_mode=True)
    # The teardown asks no package manager where nothing was saved.
    assert not saved.save_packages(host, {}, check_mode=False).changed
