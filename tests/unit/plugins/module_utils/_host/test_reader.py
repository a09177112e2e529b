# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader


@pytest.fixture
def tree(tmp_path: Path) -> NodeReader:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/name").write_text("  one \ntwo\n")
    (root / "etc/empty").touch()
    (root / "etc/bytes").write_bytes(b"\xff\xfe0123")
    (root / "etc/absolute").symlink_to("/etc/name")
    (root / "etc/out").symlink_to("../../../../../../outside")
    (root / "etc/loop").symlink_to("loop")
    (root / "etc/dangling").symlink_to("/nowhere")
    (tmp_path / "outside").write_text("secret")
    return NodeReader(str(root))


def test_reading(tree: NodeReader) -> None:
    assert tree.read_text("/etc/name") == "  one \ntwo\n"
    assert tree.read_line("/etc/name") == "one"
    assert tree.read_line("/etc/empty") is None
    assert tree.read_bytes("/etc/bytes", 2, 2) == b"01"
    assert tree.read_text("/etc/bytes") == "\ufffd\ufffd0123"
    assert tree.list_dir("/etc")[:2] == ["absolute", "bytes"]
    times = tree.times("/etc/name")
    assert times is not None
    assert times == tree.times("/etc/absolute")
    assert tree.first(["/nowhere", "/etc/empty", "/etc/name"]) == "/etc/empty"


def test_what_is_not_there_is_none(tree: NodeReader) -> None:
    assert tree.read_text("/nowhere") is None
    assert tree.read_text("/etc") is None
    assert tree.read_line("/nowhere") is None
    assert tree.list_dir("/nowhere") == []
    assert tree.list_dir("/etc/name") == []
    assert tree.link_name("/etc/name") is None
    assert tree.real_path("/nowhere") is None
    assert tree.times("/nowhere") is None
    assert tree.first(["/nowhere"]) is None


def test_settings_of_the_kernel_are_read() -> None:
    assert NodeReader().read_line("/proc/sys/kernel/ostype") == "Linux"


def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    reader = NodeReader(str(tmp_path))
    assert reader.read_bytes("/pipe") is None and reader.read_text("/link") is None
    assert NodeReader("/").read_bytes("/dev/zero") is None


def test_links_stay_below_the_root(tree: NodeReader) -> None:
    assert tree.read_line("/etc/absolute") == "one"
    assert tree.real_path("/etc/absolute") == "/etc/name"
    assert tree.link_name("/etc/dangling") == "nowhere"
    assert tree.is_link("/etc/dangling")
    assert not tree.exists("/etc/dangling")
    assert tree.read_text("/etc/out") is None
    assert tree.read_text("/etc/loop") is None
    assert tree.read_text("/../outside") is None


def test_closed_folder_is_not_absent(tree: NodeReader, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tree.absent("/nowhere")
    assert tree.absent("/etc/name/below")
    assert not tree.absent("/etc/name")

    def closed(_path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "stat", closed)
    assert not tree.absent("/etc/closed/name")


def test_another_root_runs_nothing(tmp_path: Path) -> None:
    def run(*_arguments: object, **_more: object) -> Result:
        raise AssertionError("a command was run")

    reader = NodeReader(str(tmp_path), run)
    assert reader.run(["true"]) is None
    assert reader.ask_http("/run/docker.sock", "/info") is None
    assert reader.python_package("pytest", "pytest") is None
    assert reader.import_library("json") is None
    assert reader.kernel_value("osrelease") is None


def test_the_root_itself_runs_commands() -> None:
    def run(argv: list[str], timeout: int = 60) -> Result:
        return Result(0, f"{argv} {timeout}", "")

    answer = NodeReader("/", run).run(["a", "b"], timeout=7)
    assert answer is not None
    assert answer.stdout == "['a', 'b'] 7"
    assert NodeReader("/").run(["a"]) is None
    assert NodeReader("/").kernel_value("arch")


def test_version_of_a_library_without_importing_it() -> None:
    reader = NodeReader("/")
    assert reader.python_package("pytest", "pytest") == pytest.__version__
    assert reader.python_package("kubegpu_no_such_library", "x") is None
    assert reader.python_package("json", "json") == ""


def test_library_that_does_not_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubegpu_broken.py").write_text("raise RuntimeError('broken')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert NodeReader("/").import_library("kubegpu_broken") is None
    assert NodeReader("/").import_library("json") is not None


def test_answer_of_a_process_of_its_own() -> None:
    reader = NodeReader("/")
    assert reader.in_child(10, lambda: {"a": ["x" * 500_000]}) == {"a": ["x" * 500_000]}
    assert reader.in_child(10, os.getpid) != os.getpid()


def test_what_is_raised_there_is_said_here() -> None:
    def broken() -> None:
        raise RuntimeError("Driver Not Loaded")

    with pytest.raises(KubegpuError) as caught:
        NodeReader("/").in_child(10, broken)
    assert caught.value.cause == "Driver Not Loaded"
    with pytest.raises(KubegpuError, match="ended the process"):
        NodeReader("/").in_child(10, lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_library_that_hangs_is_given_up_and_its_process_killed(tmp_path: Path) -> None:
    """It holds neither our output nor us: whoever reads the output would wait for it."""
    said = tmp_path / "said"

    def hang() -> None:
        targets = [os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)]
        said.write_text(" ".join([str(os.getpid()), *targets]))
        time.sleep(60)

    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        NodeReader("/").in_child(0.5, hang)
    assert time.monotonic() - begun < 20
    pid, *targets = said.read_text().split()
    assert targets == ["/dev/null"] * 3
    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(int(pid), os.WNOHANG)
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{pid}")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, list[bytes]]]:
    path = str(tmp_path / "s")
    script: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            connection, _address = listener.accept()
            with connection:
                script.append(connection.recv(1000))
                connection.sendall(script[0])

        thread = threading.Thread(target=serve)
        thread.start()
        yield path, script
        thread.join(5)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b'HTTP/1.0 200 OK\r\nA: b\r\n\r\n{"x": 1}', b'{"x": 1}'),
        (b"HTTP/1.0 404 Not Found\r\n\r\nno", None),
        (b"nonsense", None),
    ],
)
def test_ask_http(server: tuple[str, list[bytes]], answer: bytes, body: bytes | None) -> None:
    path, script = server
    script.append(answer)
    assert NodeReader("/").ask_http(path, "/info") == body
    assert script[1].startswith(b"GET /info HTTP/1.0\r\n")


def test_ask_http_of_nobody(tmp_path: Path) -> None:
    assert NodeReader("/").ask_http(str(tmp_path / "none"), "/info") is None
