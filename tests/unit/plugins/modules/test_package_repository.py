# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.access import Barrier
from ansible_collections.kubegpu.nodes.plugins.module_utils._record import store as _state
from ansible_collections.kubegpu.nodes.plugins.module_utils._repository import apply
from ansible_collections.kubegpu.nodes.plugins.modules import package_repository as module
from tests.unit.fixtures.keys import ED25519, ED25519_FINGERPRINT
from tests.unit.module_process import predicted, run_module
from tests.unit.plugins.module_utils._formats.test_openpgp import RSA2048

KEY, FINGERPRINT = ED25519.decode(), ED25519_FINGERPRINT
OFFICIAL = "https://nvidia.github.io/libnvidia-container/stable"
OLD_LINE = (
    "# added by hand\n"
    "deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg]"
    f" {OFFICIAL}/deb/$(ARCH) /\n"
    "deb http://archive.example/debian stable main\n"
)
OLD_STANZA = f"""# a comment of the admin's

Types: deb
URIs: {OFFICIAL}/deb/amd64/
Suites: ./
Signed-By: /usr/share/keyrings/other.gpg

Types: deb
URIs: http://archive.example/debian
Suites: stable
Components: main
"""


class Node:
    """apt's files below a temporary directory."""

    def __init__(self, root: Path):
        self.root = root
        self.apt = root / "etc" / "apt"
        self.sources = self.apt / "sources.list.d"
        self.sources.mkdir(parents=True)
        self.arguments = {
            "name": "kubegpu-test",
            "url": f"{OFFICIAL}/deb",
            "key": KEY,
            "key_fingerprints": [FINGERPRINT],
            "sources_directory": str(self.sources),
            "sources_list": str(self.apt / "sources.list"),
            "keyring_directory": str(self.apt / "keyrings"),
            "configuration_directory": str(self.apt / "apt.conf.d"),
            "state_path": str(root / "var" / "state.json"),
        }

    def present(self, **options):
        return predicted(module.main, {**self.arguments, **options})

    def absent(self, **options):
        keep = ("_directory", "_list", "_path", "name")
        arguments = {name: v for name, v in self.arguments.items() if name.endswith(keep)}
        return predicted(module.main, {**arguments, "state": "absent", **options})

    def tree(self):
        return {
            str(path.relative_to(self.root)): (
                path.read_bytes() if path.is_file() else None,
                path.stat().st_mode,
            )
            for path in sorted(self.root.rglob("*"))
        }


@pytest.fixture(autouse=True)
def _no_sandbox():
    """Folders of tests can be entered by their owner alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "sandbox_user", lambda _run: "")
        yield


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


@pytest.mark.parametrize("check", [True, False])
def test_a_folder_of_keys_that_apt_cannot_enter_is_named(node, monkeypatch, check):
    """ANXS/postgresql#615: root's umask was 077 when the folder was made."""
    folder = node.apt / "keyrings"
    folder.mkdir(0o700)
    before = node.tree()
    found = Barrier(str(folder), folder=True, mode=0o700)
    monkeypatch.setattr(apply, "sandbox_user", lambda _run: "_apt")
    monkeypatch.setattr(apply, "barrier", lambda _run, path, _user: {str(folder): found}[path])
    answer = run_module(module.main, node.arguments, check=check)
    assert answer["failed"] and "as the user _apt, which cannot read" in answer["cause"]
    assert answer["evidence"] == f"the folder {folder} has mode 0700"
    assert answer["next_step"] == f"Run chmod 0755 {folder}, then run again."
    assert node.tree() == before
    # Removing needs no key.
    assert not node.absent().get("failed")


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(("key", "kept"), [("cos", False), ("rpm-ostree", True), ("bootc", True)])
def test_an_image_that_does_not_keep_etc_is_refused(node, monkeypatch, key, kept, check):
    system = {"id": "x", "version": "", "image": "ID=x in os-release", "image_system": key}
    there = run_module(module.main, node.arguments) and node.tree()
    assert node.absent()["changed"]
    before = node.tree()
    monkeypatch.setattr(apply, "read_os", lambda _reader: system)
    answer = run_module(module.main, node.arguments, check=check)
    if kept:
        assert answer["changed"]
        return
    assert answer["failed"] and "is an image" in answer["cause"], answer
    assert "a repository of packages is not changed" in answer["cause"] and node.tree() == before
    # One that is there as requested needs no change, and it can be removed.
    monkeypatch.undo()
    assert run_module(module.main, node.arguments)["changed"] and node.tree().keys() == there.keys()
    monkeypatch.setattr(apply, "sandbox_user", lambda _run: "")
    monkeypatch.setattr(apply, "read_os", lambda _reader: system)
    assert not run_module(module.main, node.arguments, check=check).get("failed")
    assert not node.absent().get("failed")


def test_the_folder_of_keys_is_made_for_everybody_whatever_the_umask(node):
    umask = os.umask(0o077)
    try:
        assert run_module(module.main, node.arguments)["changed"]
    finally:
        os.umask(umask)
    key = node.apt / "keyrings" / "kubegpu-test.asc"
    assert key.parent.stat().st_mode & 0o777 == 0o755 and key.stat().st_mode & 0o777 == 0o644


def test_create_again_absent_absent_again(node):
    before = node.tree()
    first = node.present()
    assert first["changed"]
    assert len(first["diff"]) == 2
    assert (node.sources / "kubegpu-test.sources").read_text() == (
        "# Written by kubegpu.nodes.package_repository.\n"
        "Types: deb\n"
        f"URIs: {OFFICIAL}/deb/$(ARCH)\n"
        "Suites: /\n"
        "Enabled: yes\n"
        f"Signed-By: {node.apt}/keyrings/kubegpu-test.asc\n"
    )
    assert (node.apt / "keyrings" / "kubegpu-test.asc").read_text() == KEY
    assert first["key_fingerprints"] == [FINGERPRINT]
    again = node.present()
    assert not again["changed"]
    assert again["diff"] == []
    gone = node.absent()
    assert gone["changed"]
    assert node.tree() == before
    assert not node.absent()["changed"]
    assert node.tree() == before


def test_check_mode_writes_nothing(node):
    before = node.tree()
    answer = run_module(module.main, node.arguments, check=True)
    assert answer["changed"]
    assert node.tree() == before


@pytest.mark.parametrize("diff", [True, False])
def test_diff_only_where_asked_for(node, diff):
    assert ("diff" in run_module(module.main, node.arguments, diff=diff)) is diff


def test_a_wrong_key_stops_before_anything_is_written(node):
    (node.sources / "old.list").write_text(OLD_LINE)
    before = node.tree()
    wanted = "C95B321B61E88C1809C4F759DDCAE044F796ECB0"
    answer = run_module(module.main, {**node.arguments, "key_fingerprints": [wanted]})
    assert answer["failed"]
    assert f"expected {wanted}" in answer["msg"]
    assert FINGERPRINT in answer["msg"]
    assert "Next step:" in answer["msg"]
    assert node.tree() == before


@pytest.mark.parametrize(
    ("name", "text", "staying"),
    [
        ("old.list", OLD_LINE, "\ndeb http://archive.example/debian stable main\n"),
        ("old.sources", OLD_STANZA, "Components: main\n"),
    ],
)
def test_an_earlier_entry_is_switched_off_and_comes_back(node, name, text, staying):
    old = node.sources / name
    old.write_text(text)
    old.chmod(0o640)
    before = node.tree()
    answer = node.present()
    assert [entry["file"] for entry in answer["disabled"]] == [str(old)]
    assert "Conflicting" not in apt_says(node)
    assert staying in old.read_text()
    assert not node.present()["changed"]
    node.absent()
    assert node.tree() == before


def test_apt_itself_refuses_without_and_takes_with(node):
    """Two entries with different keys: pain 22, judged by the real apt."""
    (node.sources / "old.list").write_text(OLD_LINE)
    node.present()
    ours = (node.sources / "kubegpu-test.sources").read_text()
    node.absent()
    (node.sources / "kubegpu-test.sources").write_text(ours)
    assert "Conflicting values set for option Signed-By" in apt_says(node)
    (node.sources / "kubegpu-test.sources").unlink()
    node.present()
    said = apt_says(node)
    assert "Conflicting" not in said
    assert f"{OFFICIAL}/deb/amd64/".replace("amd64", architecture()) in said
    assert "http://archive.example/debian" in said


def test_edits_by_somebody_else_stay(node):
    old = node.sources / "old.list"
    old.write_text(OLD_LINE)
    node.present()
    old.write_text(old.read_text() + "deb http://new.example/ ./\n")
    ours = node.sources / "kubegpu-test.sources"
    ours.write_text(ours.read_text() + "\nTypes: deb\nURIs: http://new.example/\nSuites: ./\n")
    node.absent()
    assert old.read_text() == OLD_LINE + "deb http://new.example/ ./\n"
    assert ours.read_text() == "Types: deb\nURIs: http://new.example/\nSuites: ./\n"
    assert not (node.apt / "keyrings").exists()


@pytest.mark.parametrize("armored", [True, False])
def test_a_key_is_read_from_its_address(node, monkeypatch, armored):
    lines = KEY.splitlines()[2:-2]
    content = KEY.encode() if armored else base64.b64decode("".join(lines))
    asked = []
    monkeypatch.setattr(apply, "download_key", lambda *how: asked.append(how) or content)
    proxy = "http://proxy.example:3128"
    del node.arguments["key"]
    there = {"key_url": "https://example.invalid/key", "https_proxy": proxy}
    first = node.present(**there)
    assert first.get("key_fingerprints") == [FINGERPRINT], first
    assert (node.apt / "keyrings" / "kubegpu-test.asc").read_text() == KEY
    url, proxies, _ca_file = asked[0]
    assert (url, proxies["https_proxy"]) == (there["key_url"], proxy)
    assert not node.present(**there)["changed"]
    refused = node.present(**there, key_fingerprints=["0" * 40])
    assert refused["failed"] and "not the expected one" in refused["msg"]


def test_a_key_that_somebody_else_uses_stays(node):
    node.present()
    key = node.apt / "keyrings" / "kubegpu-test.asc"
    (node.sources / "more.list").write_text(f"deb [signed-by={key}] http://more.example/ ./\n")
    answer = node.absent()
    assert key.exists()
    assert any("signed by it" in reason for reason in answer["reasons"])


def test_without_a_record_only_our_own_entry_goes(node):
    (node.sources / "old.list").write_text(OLD_LINE)
    node.present()
    shutil.rmtree(node.root / "var")
    node.absent()
    assert not (node.sources / "kubegpu-test.sources").exists()
    assert not (node.apt / "keyrings" / "kubegpu-test.asc").exists()
    assert (node.sources / "old.list").read_text() == OLD_LINE


def test_a_mirror_replaces_the_official_address(node):
    old = node.sources / "old.list"
    old.write_text(OLD_LINE)
    answer = node.present(url="http://mirror.example/deb", replaces=[OFFICIAL])
    assert len(answer["disabled"]) == 1
    assert (
        "URIs: http://mirror.example/deb/$(ARCH)\n"
        in (node.sources / "kubegpu-test.sources").read_text()
    )
    # No longer replaced: the admin's entry is his own again.
    assert node.present(url="http://mirror.example/deb")["changed"]
    assert old.read_text() == OLD_LINE


def test_proxy_and_authority_of_this_host_only_and_gone_again(node):
    node.present(
        url="https://mirror.example:8443/deb",
        https_proxy="http://proxy.example:3128",
        ca_file="/etc/ssl/site.pem",
    )
    configuration = node.apt / "apt.conf.d" / "80kubegpu-test.conf"
    lines = configuration.read_text().splitlines()[1:]
    assert lines == [
        'Acquire::https::Proxy::mirror.example "http://proxy.example:3128";',
        'Acquire::https::mirror.example::CaInfo "/etc/ssl/site.pem";',
    ]
    dumped = subprocess.run(
        ["apt-config", "dump", "--no-empty"],
        env={"APT_CONFIG": str(configuration), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert set(lines) <= set(dumped)
    assert node.present(url="https://mirror.example:8443/deb")["changed"]
    assert not configuration.exists()
    assert not configuration.parent.exists()


def test_passwords_are_in_no_output_and_in_no_readable_file(node):
    answer = run_module(
        module.main,
        {
            **node.arguments,
            "url": "https://user:hunter2secret@mirror.example/deb",
            "http_proxy": "http://me:proxysecret@proxy.example:3128",
        },
    )
    assert "secret" not in repr(answer)
    assert (node.sources / "kubegpu-test.sources").stat().st_mode & 0o777 == 0o600
    assert (node.apt / "apt.conf.d" / "80kubegpu-test.conf").stat().st_mode & 0o777 == 0o600
    assert "hunter2secret" in (node.sources / "kubegpu-test.sources").read_text()
    assert "secret" not in repr(node.absent())


def test_a_failure_half_way_puts_all_files_back(node, monkeypatch):
    (node.sources / "old.list").write_text(OLD_LINE)
    before = node.tree()
    real = _state.write_file

    def full_disk(wanted):
        if wanted.path.endswith(".sources"):
            raise module.KubegpuError("No space left on device.")
        return real(wanted)

    monkeypatch.setattr(_state, "write_file", full_disk)
    assert run_module(module.main, node.arguments)["failed"]
    after = node.tree()
    # Not even the files that come before it are left; only the record knows of the attempt.
    assert {k: v for k, v in after.items() if not k.startswith("var")} == before
    monkeypatch.undo()
    assert node.present()["changed"]
    node.absent()
    assert node.tree() == before


def test_a_failure_in_a_change_keeps_the_earlier_change(node, monkeypatch):
    start = node.tree()
    node.present()
    before = node.tree()
    real = _state.write_file

    def full_disk(wanted):
        if wanted.content and b"mirror.example" in wanted.content and "state" not in wanted.path:
            raise module.KubegpuError("No space left on device.")
        return real(wanted)

    monkeypatch.setattr(_state, "write_file", full_disk)
    wanted = {"url": "http://mirror.example/deb", "http_proxy": "http://proxy.example"}
    assert run_module(module.main, {**node.arguments, **wanted})["failed"]
    monkeypatch.undo()
    assert {k: v for k, v in node.tree().items() if "conf.d" not in k} == before
    node.absent()
    assert node.tree() == start


def test_apt_refusing_the_result_puts_all_files_back(node):
    before = node.tree()
    answer = run_module(module.main, {**node.arguments, "suite": "broken suite/"})
    assert answer["failed"]
    assert "Next step:" in answer["msg"]
    assert node.tree() == before


def test_what_apt_had_against_other_entries_is_not_ours(node):
    (node.sources / "broken.list").write_text("deb nonsense\n")
    assert node.present()["changed"]


def test_wrong_mode_of_the_key_is_repaired(node):
    node.present()
    (node.apt / "keyrings" / "kubegpu-test.asc").chmod(0o600)
    answer = node.present()
    assert answer["changed"]
    assert answer["diff"][0]["before_header"].endswith("(mode 0600)")


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"name": "a/b"}, "cannot be used"),
        ({"key_fingerprints": ["F796ECB0"]}, "full fingerprint"),
        ({"url": "mirror.example"}, "not the URL"),
        ({"suite": "stable"}, "no components"),
        ({"key": "no key"}, "key"),
        ({"http_proxy": "proxy:3128"}, "proxy"),
        ({"url": "https://[::1]/deb", "ca_file": "/x"}, "IPv6"),
    ],
)
def test_wrong_wishes_are_refused_by_name(node, options, cause):
    before = node.tree()
    answer = run_module(module.main, {**node.arguments, **options})
    assert answer["failed"]
    assert cause in answer["msg"]
    assert node.tree() == before


def test_a_file_of_that_name_comes_back(node):
    own = node.sources / "kubegpu-test.sources"
    own.write_text("Types: deb\nURIs: http://before.example/\nSuites: ./\n")
    own.chmod(0o640)
    before = node.tree()
    node.present()
    node.present(url="http://other.example/deb")
    node.absent()
    assert node.tree() == before


def test_a_node_without_apt_is_refused(node, monkeypatch):
    monkeypatch.setattr(
        module, "module_runner", lambda _module: lambda *_a, **_k: module_result(127)
    )
    answer = run_module(module.main, node.arguments)
    assert answer["failed"]
    assert "yum_repository" in answer["msg"]


def module_result(rc):
    from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result  # noqa: PLC0415

    return Result(rc, "", "dpkg: no such program")


def architecture():
    return subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()


def apt_says(node):
    """What the real apt makes of the entries: it prints what it would fetch."""
    answer = subprocess.run(
        [
            "apt-get",
            "update",
            "--print-uris",
            "-o",
            "Debug::NoLocking=1",
            "-o",
            f"Dir::Etc::sourcelist={node.apt}/sources.list",
            "-o",
            f"Dir::Etc::sourceparts={node.sources}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("no_proxy", "address"),
    [
        ("localhost,mirror.example", "DIRECT"),
        (".example", "DIRECT"),
        ("*.example other", "DIRECT"),
        ("*", "DIRECT"),
        ("ror.example", "http://proxy.example:3128"),
        ("", "http://proxy.example:3128"),
    ],
)
def test_host_that_needs_no_proxy_is_reached_directly(node, no_proxy, address):
    node.present(
        url="http://mirror.example/deb", http_proxy="http://proxy.example:3128", no_proxy=no_proxy
    )
    text = (node.apt / "apt.conf.d" / "80kubegpu-test.conf").read_text()
    assert f'Acquire::http::Proxy::mirror.example "{address}";' in text


ARCHIVE = "http://deb.debian.example/debian"


def beside(node, **options):
    """Return the options of more components of the archive, signed by its own keys."""
    node.keyring = node.root / "archive-keyring.asc"
    node.keyring.write_text(KEY)
    for name in ("key", "key_fingerprints"):
        node.arguments.pop(name, None)
    return {
        "url": ARCHIVE,
        "suite": "bookworm",
        "components": ["non-free"],
        "keyring": str(node.keyring),
        **options,
    }


@pytest.mark.parametrize("signed", [True, False])
def test_components_stand_beside_the_archive_and_name_its_keys_as_it_does(node, signed):
    options = beside(node)
    own = node.sources / "debian.sources"
    signature = f"Signed-By: {node.keyring}\n" if signed else ""
    own.write_text(
        f"Types: deb\nURIs: {ARCHIVE}\nSuites: bookworm bookworm-updates\nComponents: main\n"
        + signature
    )
    before = node.tree()
    answer = node.present(**options)
    assert answer["changed"]
    assert answer["disabled"] == []
    assert answer["key_fingerprints"] == [FINGERPRINT]
    assert (node.sources / "kubegpu-test.sources").read_text() == (
        "# Written by kubegpu.nodes.package_repository.\n"
        f"Types: deb\nURIs: {ARCHIVE}\nSuites: bookworm\nComponents: non-free\nEnabled: yes\n"
        + signature
    )
    assert not (node.apt / "keyrings").exists()
    assert not node.present(**options)["changed"]
    assert node.absent()["changed"]
    assert node.tree() == before


def test_a_keyring_alone_signs_where_nothing_else_is(node):
    node.present(**beside(node))
    text = (node.sources / "kubegpu-test.sources").read_text()
    assert f"Signed-By: {node.keyring}\n" in text
    # Edited since: our entry alone goes.
    (node.sources / "kubegpu-test.sources").write_text(f"{text}\n# mine\n")
    node.absent()
    assert (node.sources / "kubegpu-test.sources").read_text() == "# mine\n"


def test_a_keyring_takes_the_place_of_a_key(node):
    node.present()
    assert (node.apt / "keyrings" / "kubegpu-test.asc").exists()
    node.present(**beside(node))
    assert not (node.apt / "keyrings" / "kubegpu-test.asc").exists()


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"keyring": "/none/such"}, "/none/such is not on the node"),
        ({"key_fingerprints": ["0" * 40]}, "has other keys than the expected ones"),
        ({"keyring": None}, "needs its key"),
        (
            {"key": KEY, "key_fingerprints": [FINGERPRINT]},
            "mutually exclusive: key|key_url|keyring",
        ),
    ],
)
def test_a_keyring_that_cannot_be_right_is_refused(node, options, cause):
    answer = node.present(**beside(node, **options))
    assert answer["failed"]
    assert cause in answer["msg"]
    assert list(node.sources.iterdir()) == []


def test_a_keyring_with_one_key_more_than_the_expected_ones_is_refused(node):
    """Whoever has the other key can sign, too; one that fits was enough before."""
    options = beside(node, key_fingerprints=[FINGERPRINT])
    assert node.present(**options)["changed"]
    node.absent()
    node.keyring.write_text(KEY + RSA2048.decode())
    answer = node.present(**options)
    assert answer["failed"]
    assert "has other keys than the expected ones" in answer["msg"]
    assert FINGERPRINT not in answer["msg"].partition("not among them: ")[2]
    assert list(node.sources.iterdir()) == []
    # The distribution's own file has several, and none is named.
    assert node.present(**{**options, "key_fingerprints": None})["changed"]


@pytest.fixture
def rpm_node(tmp_path):
    """The same below another format; rpm itself is asked by tests/integration/packages."""
    made = Node(tmp_path)
    made.arguments = {
        **{
            name: made.arguments[name] for name in ("name", "key", "key_fingerprints", "state_path")
        },
        "url": f"{OFFICIAL}/rpm",
        "format": "dnf",
        "sources_directory": str(made.sources),
        "keyring_directory": str(tmp_path / "rpm-gpg"),
    }
    return made


RPM = {"validate": False, "check_packages": False}
OLD_REPO = f"""[nvidia]
baseurl={OFFICIAL}/rpm/$basearch
gpgkey=https://nvidia.github.io/libnvidia-container/gpgkey
"""


def test_a_proxy_for_all_nodes_of_a_site_does_not_stop_zypper(rpm_node, monkeypatch):
    # rpm's keyring, which zypper goes by, is asked by tests/integration/packages.
    monkeypatch.setattr(apply, "read_ring", lambda run: {FINGERPRINT: "gpg-pubkey-1-1"})
    options = {"validate": False, "format": "zypper", "https_proxy": "http://user:word@proxy:3128"}
    said = []
    monkeypatch.setattr(module.AnsibleModule, "warn", lambda _self, text: said.append(text))
    assert rpm_node.present(**options)["changed"]
    assert "proxy=" not in (rpm_node.sources / "kubegpu-test.repo").read_text()
    # In check mode and in the run.
    assert len(said) == 2 and all("/etc/sysconfig/proxy" in text for text in said)
    assert not rpm_node.present(**options)["changed"] and len(said) == 2


def test_rpm_create_again_absent_absent_again(rpm_node):
    old = rpm_node.sources / "nvidia.repo"
    old.write_text(OLD_REPO)
    before = rpm_node.tree()
    first = rpm_node.present(**RPM)
    assert first["changed"] and len(first["diff"]) == 3
    assert [entry["file"] for entry in first["disabled"]] == [str(old)]
    assert set(first["files"]) == {"key", "sources"}
    entry = (rpm_node.sources / "kubegpu-test.repo").read_text()
    assert f"baseurl={OFFICIAL}/rpm/$basearch\n" in entry and "gpgcheck=0\n" in entry
    assert "enabled=0\n" in old.read_text()
    assert not rpm_node.present(**RPM)["changed"]
    proxied = rpm_node.present(**RPM, https_proxy="http://user:word@proxy:3128")
    assert (rpm_node.sources / "kubegpu-test.repo").stat().st_mode & 0o777 == 0o600
    assert "word" not in str(proxied)
    assert rpm_node.absent(format="dnf")["changed"]
    assert rpm_node.tree() == before
    assert not rpm_node.absent(format="dnf")["changed"]


def test_rpm_wrong_key_writes_nothing(rpm_node):
    before = rpm_node.tree()
    answer = rpm_node.present(**RPM, key_fingerprints=["AB" * 20])
    assert answer["failed"] and "not the expected one" in answer["msg"]
    assert rpm_node.tree() == before


def test_options_of_apt_are_refused_elsewhere(rpm_node):
    answer = rpm_node.present(**RPM, sources_list="/etc/apt/sources.list")
    assert answer["failed"] and "sources_list" in answer["msg"]
