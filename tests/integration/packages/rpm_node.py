# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of the RPM families: a Debian root file system with the real dnf 4, dnf 5 or zypper.

It says in its os-release that it is another distribution.
"""

from __future__ import annotations

import os
import re
import shutil
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.packages.chroot_node import ChrootNode, base_tree, unpacked

needs_root = [
    pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root"),
    pytest.mark.skipif(
        not all(map(shutil.which, ("mmdebstrap", "gpg", "unshare"))),
        reason="mmdebstrap, gnupg or unshare is not installed",
    ),
]


@dataclass(frozen=True)
class Manager:
    """A manager: what Debian calls its packages, what the node says it is, how one asks by hand."""

    name: str
    include: tuple[str, ...]
    release: str
    folder: str
    lock_file: str
    lock: str
    unlock: str
    install: str
    remove: str
    suite: str = "bookworm"


DNF = Manager(
    "dnf",
    ("dnf", "dnf-plugins-core"),
    'ID="rocky"\nVERSION_ID="9.4"\nID_LIKE="rhel centos fedora"\n',
    "/etc/yum.repos.d",
    "/etc/dnf/plugins/versionlock.list",
    "dnf -C -q versionlock add {0}",
    "dnf -C -q versionlock delete {0}",
    "dnf -y -q install {0}-{1}",
    "dnf -y -q --noautoremove remove {0}",
)
DNF5 = Manager(
    "dnf5",
    ("dnf5", "python3-libdnf5", "gpg"),
    'ID="fedora"\nVERSION_ID="44"\n',
    "/etc/yum.repos.d",
    "/etc/dnf/versionlock.toml",
    "dnf5 -C -q versionlock add {0}",
    "dnf5 -C -q versionlock delete {0}",
    "dnf5 -y -q install {0}-{1}",
    "dnf5 -y -q --setopt=clean_requirements_on_remove=0 remove {0}",
    suite="sid",
)
ZYPPER = Manager(
    "zypper",
    ("zypper",),
    'ID="opensuse-leap"\nVERSION_ID="15.6"\nID_LIKE="suse opensuse"\n',
    "/etc/zypp/repos.d",
    "/etc/zypp/locks",
    "zypper -n addlock {0}",
    "zypper -n removelock {0}",
    "zypper -n install --oldpackage {0}={1}",
    "zypper -n remove {0}",
)
# Managers keep when, and what for; only what is asked of them counts here.
_NOISE = (
    "! -name ld.so.cache ! -path etc/zypp/locks ! -path 'etc/dnf/*versionlock*' "
    "! -path 'etc/zypp/credentials.d*'"
)
# Of a list of locks: lines that lock nothing.
_EMPTY = re.compile(r"^\s*(?:#.*)?\Z|Added by|^packages = \[\]|^version = .1")


class RpmNode(ChrootNode):
    """A root file system with a manager of the RPM families."""

    def __init__(self, root: Path, work: Path, manager: Manager, url: str, key, fingerprint):
        super().__init__(root, work)
        self.manager, self.url, self.key, self.fingerprint = manager, url, key, fingerprint
        # A real node's root is a mount point, which zypper without its locks needs.
        self.prefix = (
            *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
            'mount --bind "$0" "$0" && exec "$@"',
            str(root),
        )

    def run(self, module, **options):
        """Run a task: check mode says the same before it, and that there is nothing after it."""
        answers = self.tasks(
            (module, options, {"check_mode": True}),
            (module, options),
            (module, options, {"check_mode": True}),
        )
        # The play ends where a task fails.
        assert not answers[-1].get("failed"), answers[-1]["msg"]
        check, answer, again = answers
        # Where check mode had changed something, the run would have found less to do.
        assert check["changed"] == answer["changed"]
        assert check["diff"] == answer["diff"]
        assert not again["changed"], again["diff"]
        return answer

    def repository(self, **options):
        return {
            "name": "kubegpu-test",
            "url": self.url,
            "key": self.key,
            "key_fingerprints": [self.fingerprint],
            "check_packages": False,
            **options,
        }

    def packages(self):
        locks = self.shell(f"grep -v '^#' {self.manager.lock_file}").splitlines()
        return [
            *sorted(self.shell("rpm -qa").splitlines()),
            *(f"lock {line}" for line in sorted(locks) if not _EMPTY.search(line)),
        ]

    def rpm_install(self, name):
        """Install a package of the repository with rpm alone, beside what is there."""
        with urllib.request.urlopen(f"{self.url}/x86_64/{name}.noarch.rpm") as answer:
            (self.root / "tmp" / "x.rpm").write_bytes(answer.read())
        self.shell("rpm --install --force --nodeps --nosignature --nodigest /tmp/x.rpm")
        (self.root / "tmp" / "x.rpm").unlink()

    def held(self, name):
        # NAME-0:VERSION, solvable_name: NAME, or name = "NAME".
        return any(
            line.startswith("lock") and name in re.split(r'-\d+:|[\s"]+', line)
            for line in self.packages()
        )

    def etc(self):
        return self.shell(
            f"cd / && find etc {_NOISE} -printf '%M %u:%g %p %l\\n' | LC_ALL=C sort; "
            f"find etc -type f {_NOISE} -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; "
            "ls -A /var/lib/kubegpu 2>&1"
        ).splitlines()


def node_tree(manager: Manager, name: str) -> Path:
    base = base_tree(
        *(manager.suite, "python3", "rpm", *manager.include),
        *(("createrepo-c",) if manager is DNF else ()),
        manager.name,
    )
    root = unpacked(base, f"rpm-{name}")
    files = {
        "etc/os-release": manager.release,
        # Debian keeps rpm's database in the home folder.
        "etc/rpm/macros": "%_dbpath /var/lib/rpm\n",
        "etc/dnf/vars/releasever": "9\n",
        # Debian's plugin for packages that were built on the machine.
        "etc/dnf/plugins/local.conf": "[main]\nenabled = false\n",
        "etc/dnf/libdnf5-plugins/local.conf": "[main]\nname = local\nenabled = 0\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        (root / path).write_text(text)
    for folder in (manager.folder, "/var/lib/rpm"):
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    return root
