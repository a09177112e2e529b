# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real Chromium without a window, driven by its DevTools protocol over a pipe."""

from __future__ import annotations

import itertools
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.testbed.tools import need, which

_TIMEOUT = 120


class Browser:
    """A running Chromium with one page; a context manager that ends it."""

    def __init__(self, folder: Path):
        need(("chromium",))
        # Numbers of the descriptors that Chromium reads and writes: 3 and 4.
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        argv = [
            which("chromium") or "chromium", "--headless=new", "--disable-gpu",
            "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
            f"--user-data-dir={folder / 'profile'}", "about:blank",
        ]  # fmt: skip
        if os.geteuid() == 0:
            argv.append("--no-sandbox")
        script = f'exec "$@" 3<&{commands} 4>&{answers}'
        self._log = (folder / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *argv], pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
        )  # fmt: skip
        os.close(commands)
        os.close(answers)
        self._number, self._rest, self._session = 0, b"", ""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        (target,) = (
            one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"
        )
        found = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime", "DOM"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        return self

    def __exit__(self, *_failure: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._log.close()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)
        raise AssertionError(f"{method}: Chromium has ended")

    def _wait_loaded(self, loader: str) -> None:
        """Wait until what one navigation loads is there."""
        for one in itertools.chain([*self.events], self._kept_messages()):
            params = one.get("params", {})
            if params.get("loaderId") == loader and params.get("name") == "load":
                return
        raise AssertionError("Chromium has ended")

    def _kept_messages(self) -> Iterator[dict[str, Any]]:
        for message in self._messages():
            self.events.append(message)
            yield message

    def _messages(self) -> Iterator[dict[str, Any]]:
        end = time.monotonic() + _TIMEOUT
        while True:
            while b"\0" in self._rest:
                message, _zero, self._rest = self._rest.partition(b"\0")
                yield json.loads(message)
            ready, _w, _x = select.select([self._in], [], [], max(0, end - time.monotonic()))
            assert ready, "Chromium does not answer"
            read = os.read(self._in, 1 << 20)
            if not read:
                return
            self._rest += read

    def open(self, path: Path, scheme: str = "light", width: int = 1280, height: int = 900) -> None:
        """Open a file, in a color scheme, with an empty list of events."""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])  # fmt: skip
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        # Not from a file to itself with another fragment, which loads nothing.
        for url in ("about:blank", path.as_uri()):
            self.events.clear()
            self._wait_loaded(self.call("Page.navigate", url=url)["loaderId"])

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                          awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press a key, by the name and the number that the page sees."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        key_of = {"key": key, "code": "Space" if key == " " else key,
                  "windowsVirtualKeyCode": code}  # fmt: skip
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **key_of)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key_of)

    def of(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of the events of one kind."""
        return [one["params"] for one in self.events if one.get("method") == method]
