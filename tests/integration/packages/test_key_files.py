# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key files that hide a second key, judged by the programs that trust what a key file holds.

Who serves a repository's key (a mirror, a proxy, plain http) can put a key of their own into the
file, where the reader that compares fingerprints does not see it.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.modules import package_repository
from tests.testbed.tools import need, which
from tests.unit.module_process import run_module

BEGIN = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
END = "-----END PGP PUBLIC KEY BLOCK-----"


class Owner:
    """A key, and a signature made with it."""

    def __init__(self, folder, name):
        home = folder / name
        home.mkdir(mode=0o700)
        self._gpg = ["gpg", "--homedir", str(home), "--batch", "--yes", "--passphrase", ""]
        self._run("--quick-gen-key", f"{name} <{name}@example.invalid>", "rsa2048", "sign", "never")
        self.armored = self._run("--armor", "--export").decode()
        self.binary = self._run("--export")
        self.data = folder / f"{name}-data"
        self.data.write_text(f"by {name}\n")
        self.signature = folder / f"{name}-data.gpg"
        self._run("--output", str(self.signature), "--detach-sign", str(self.data))
        listing = self._run("--with-colons", "--fingerprint").decode().splitlines()
        self.fingerprint = next(line.split(":")[9] for line in listing if line.startswith("fpr:"))
        gpgconf = ["gpgconf", "--homedir", str(home), "--kill", "all"]
        subprocess.run(gpgconf, check=True, capture_output=True)

    def _run(self, *arguments):
        loopback = ["--pinentry-mode", "loopback"]
        done = subprocess.run([*self._gpg, *loopback, *arguments], capture_output=True, check=True)
        return done.stdout

    @property
    def body(self):
        """The lines of base64 between the marks."""
        return self.armored.partition("\n\n")[2].partition("\n-----END")[0]


@pytest.fixture(scope="module")
def owners(tmp_path_factory):
    need(("gpg", "gpgv", "sqv", "rpmkeys"))
    folder = tmp_path_factory.mktemp("owners")
    return Owner(folder, "good"), Owner(folder, "evil")


def in_a_header(separator):
    """The second key's whole block in a header of the first one's, with other ends of lines."""

    def made(good, evil):
        hidden = separator.join(["x", "", *evil.body.splitlines(), END, BEGIN])
        return good.armored.replace(f"{BEGIN}\n", f"{BEGIN}\nComment: {hidden}\n", 1)

    return made


def as_another_block(begin, end):
    """The second key as a block whose marks are not those of a public key."""

    def made(good, evil):
        return f"{begin}\n\n{evil.body}\n{end}\n{good.armored}"

    return made


def before_the_empty_line(good, evil):
    return good.armored.replace(f"{BEGIN}\n", f"{BEGIN}\n{evil.body}\n", 1)


def marked(kind, dashes="-----"):
    return as_another_block(f"{dashes}BEGIN {kind}{dashes}", f"{dashes}END {kind}{dashes}")


ATTACKS = {
    "form feed": in_a_header("\x0c"),
    "vertical tab": in_a_header("\x0b"),
    "carriage return": in_a_header("\r"),
    "file separator": in_a_header("\x1c"),
    "next line": in_a_header("\x85"),
    "line separator": in_a_header("\u2028"),
    "paragraph separator": in_a_header("\u2029"),
    "another kind": marked("FOO"),
    "two spaces": marked(" PGP PUBLIC KEY BLOCK"),
    "lower case": marked("pgp public key block"),
    "four dashes": marked("PGP PUBLIC KEY BLOCK", "----"),
    "six dashes": marked("PGP PUBLIC KEY BLOCK", "------"),
    "indented": as_another_block(f" {BEGIN}", f" {END}"),
    "words behind the mark": as_another_block(f"{BEGIN} x", END),
    "a message": marked("PGP MESSAGE"),
    "before the empty line": before_the_empty_line,
    "behind the checksum": lambda good, evil: good.armored.replace(
        f"\n{END}", f"\n{evil.body}\n{END}"
    ),
    "behind the end": lambda good, evil: good.armored.replace(END, f"{END}\x0c{evil.armored}"),
    "as a second key": lambda good, evil: good.armored + evil.armored,
    "in one block": lambda good, evil: "\n".join(
        [BEGIN, "", base64.b64encode(good.binary + evil.binary).decode(), END, ""]
    ),
}  # fmt: skip


def apt(keys, owner, folder):
    """apt up to 2.8, whose keys a script of its own takes out of their armor."""
    return ["apt-key", "--readonly", "--keyring", keys, "verify", owner.signature, owner.data]


def sqv(keys, owner, folder):
    """apt from 3 on."""
    return ["sqv", "--keyring", keys, owner.signature, owner.data]


def accepted(judge, keys, owner, folder):
    argv = [str(word) for word in judge(keys, owner, folder)]
    if which(argv[0]) is None:
        return False
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def imported(keys, owner, folder):
    """Whether rpm trusts the owner's key once it has imported the file."""
    database = folder / "rpm"
    shutil.rmtree(database, ignore_errors=True)
    rpm = ["--dbpath", str(database)]
    subprocess.run(["rpmkeys", *rpm, "--import", str(keys)], capture_output=True, check=False)
    listed = subprocess.run(
        ["rpm", *rpm, "-qa", "gpg-pubkey", "--queryformat", "%{VERSION}\n"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return owner.fingerprint[-8:].lower() in listed.stdout.split()


def who_trusts(keys, owner, folder):
    """The programs that take what the owner has signed, with this key file."""
    found = {judge.__name__ for judge in (apt, sqv) if accepted(judge, keys, owner, folder)}
    return found | ({"rpm"} if imported(keys, owner, folder) else set())


def arguments(folder, key, fingerprint):
    etc = folder / "etc"
    return {
        "name": "kubegpu-test",
        "format": "apt",
        "url": "https://repository.example/deb",
        "suite": "/",
        "key": key,
        "key_fingerprints": [fingerprint],
        "validate": False,
        "sources_directory": str(etc / "sources.list.d"),
        "sources_list": str(etc / "sources.list"),
        "keyring_directory": str(etc / "keyrings"),
        "configuration_directory": str(etc / "apt.conf.d"),
        "state_path": str(folder / "var" / "state.json"),
    }


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_file_with_a_second_key_is_refused(owners, attack, tmp_path):
    good, evil = owners
    key = ATTACKS[attack](good, evil)
    for check in (True, False):
        answer = run_module(
            package_repository.main, arguments(tmp_path, key, good.fingerprint), check=check
        )
        assert answer.get("failed"), answer
        assert "key" in answer["msg"] and "Next step" in answer["msg"]
    assert os.listdir(tmp_path) == []


def test_the_attacks_are_real(owners, tmp_path):
    """What each program makes of the files: without a refusal they would trust the second key."""
    good, evil = owners
    found = {}
    for name, attack in ATTACKS.items():
        path = tmp_path / "key.asc"
        path.write_bytes(attack(good, evil).encode())
        found[name] = who_trusts(path, evil, tmp_path)
    assert "sqv" in found["as a second key"] and "rpm" in found["as a second key"]
    if which("apt-key"):
        assert all("apt" in found[name] for name in ("another kind", "two spaces", "lower case"))
    cleaned = tmp_path / "cleaned.asc"
    cleaned.write_text("\n".join(ATTACKS["form feed"](good, evil).splitlines()) + "\n")
    assert {"sqv", "rpm"} <= who_trusts(cleaned, evil, tmp_path)


SHAPES = {
    "as exported": lambda good: good.armored,
    "crlf": lambda good: good.armored.replace("\n", "\r\n"),
    "headers": lambda good: good.armored.replace(
        f"{BEGIN}\n", f"{BEGIN}\nVersion: GnuPG v2\nComment: Schl\u00fcssel\n", 1
    ),
    "white space around": lambda good: f"\n \n{good.armored}\n\t\n",
    "twice": lambda good: good.armored * 2,
}


@pytest.fixture
def folder():
    """One that apt's own user can enter; pytest's are their owner's alone."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_written_is_the_expected_key_alone(owners, shape, folder):
    good, evil = owners
    wanted = arguments(folder, SHAPES[shape](good), good.fingerprint)
    answer = run_module(package_repository.main, wanted)
    assert not answer.get("failed"), answer
    written = folder / "etc" / "keyrings" / "kubegpu-test.asc"
    trusting = who_trusts(written, good, folder)
    assert {"sqv", "rpm"} <= trusting and ("apt" in trusting or not which("apt-key"))
    assert who_trusts(written, evil, folder) == set()
    assert not run_module(package_repository.main, wanted)["changed"]
