# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the real containerd makes of a configuration; shares no code with the module."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.modules.containerd_runtime import main
from tests.integration.engines.containerd_inputs.catalogue import fill
from tests.unit.module_process import predicted, run_module

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubegpu"
CONTAINERDS = ("1.6", "1.7", "2.1")


def binary(version: str) -> str:
    path = CACHE / "validators" / f"containerd-{version}" / "bin" / "containerd"
    if not path.exists():
        pytest.skip(f"no containerd {version}: python -m tests.testbed validators")
    return str(path)


@dataclass
class Place:
    """One configuration in a folder of its own, and one containerd to judge it."""

    folder: Path
    containerd: str

    @property
    def config(self) -> Path:
        return self.folder / "etc" / "config.toml"

    @property
    def imports(self) -> Path:
        return self.folder / "etc" / "conf.d"

    @property
    def drop_in(self) -> Path:
        return self.imports / "99-nvidia.toml"

    @property
    def state(self) -> Path:
        return self.folder / "var" / "state.json"

    def write(self, item, version: int) -> None:
        self.imports.mkdir(parents=True)
        if item.root is not None:
            text = fill(item.root, version, str(self.imports))
            self.config.write_bytes(text.encode())
            self.config.chmod(0o640)
        for name, text in item.imported.items():
            path = self.imports / name
            path.write_bytes(fill(text, version, str(self.imports)).encode())
            path.chmod(0o600)

    def snapshot(self) -> dict[str, tuple]:
        """Return every file below ``etc`` with bytes, mode and owner."""
        found = {}
        for path in sorted(self.folder.joinpath("etc").rglob("*")):
            status = path.lstat()
            content = path.read_bytes() if path.is_file() else None
            found[str(path)] = (content, status.st_mode, status.st_uid, status.st_gid)
        return found

    def arguments(self, **options) -> dict:
        return {
            "config_path": str(self.config),
            "drop_in_path": str(self.drop_in),
            "state_path": str(self.state),
            "containerd_path": binary(self.containerd),
            "unit": "kubegpu-test-no-such-unit",
            "distribution": "containerd",
            **options,
        }

    def module(self, **options) -> dict:
        """Run it, having seen that check mode predicts the same."""
        return predicted(main, self.arguments(**options))

    def ok(self, **options) -> dict:
        answer = self.module(**options)
        assert not answer.get("failed"), answer
        return answer

    def run(self, **options) -> dict:
        """Run it without check mode before, where another test has shown what that predicts."""
        answer = run_module(main, self.arguments(**options))
        assert not answer.get("failed"), answer
        return answer

    def check(self, **options) -> dict:
        return run_module(main, self.arguments(**options), check=True)

    def dump(self) -> dict:
        """Return containerd's own view, with CRI switched on for the look."""
        if not self.config.exists():
            return self._run("config", "default")
        text = self.config.read_bytes().decode()
        if not re.search(r"(?m)^disabled_plugins", text):
            return self._run("--config", str(self.config), "config", "dump")
        # A disabled plugin is left out of a dump.
        looked_at = self.config.with_name("looked-at.toml")
        names = r'"(cri|io\.containerd\.grpc\.v1\.cri)",?'
        text = re.sub(
            r"(?ms)^disabled_plugins = \[.*?\]", lambda found: re.sub(names, "", found[0]), text
        )
        looked_at.write_text(text, newline="")
        try:
            return self._run("--config", str(looked_at), "config", "dump")
        finally:
            looked_at.unlink()

    def _run(self, *arguments: str) -> dict:
        answer = subprocess.run(
            [binary(self.containerd), *arguments], capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stderr
        return tomllib.loads(answer.stdout)


def cri(dump: dict) -> dict:
    for name in ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"):
        if name in dump["plugins"]:
            return dump["plugins"][name]
    raise AssertionError("no CRI in the dump")


def runtimes(dump: dict) -> dict:
    return cri(dump)["containerd"]["runtimes"]


def default(dump: dict) -> str:
    return cri(dump)["containerd"]["default_runtime_name"] or "runc"


def given(options: dict) -> dict:
    """Return options by lower-case name, without those that say nothing."""
    return {
        key.lower(): value for key, value in options.items() if value not in ("", 0, False, [], {})
    }


def plain(runtime: dict) -> dict:
    """Return a runtime without what means the same as its absence."""
    data = {key: value for key, value in runtime.items() if value not in ("", 0, False, [], {})}
    for key in ("sandbox_mode", "sandboxer"):
        if data.get(key) == "podsandbox":
            del data[key]
    return {**data, "options": given(runtime.get("options", {}))}


def judge(
    before: dict, after: dict, name="nvidia", path="/usr/bin/nvidia-container-runtime", was=None
):
    """The verdict: earlier runtimes unchanged, one added, all else equal.

    Its options are those of the default runtime where that is of runc's type, else runc's.

    :param was: the default runtime from before us, where ``before`` does not say it.
    """
    was = was or default(before)
    old, new = runtimes(before), runtimes(after)
    assert {key: plain(value) for key, value in old.items() if key != name} == {
        key: plain(value) for key, value in new.items() if key != name
    }
    assert name in new
    handler = plain(new[name])
    assert handler["runtime_type"] == "io.containerd.runc.v2"
    options = handler["options"]
    assert options.pop("binaryname") == path
    source = plain(old.get(was, {}))
    if was == name or source.get("runtime_type") != "io.containerd.runc.v2":
        source = plain(new["runc"])
    source["options"].pop("binaryname", None)
    assert options == source["options"]
    spellings = [key for key in new[name]["options"] if key.lower() == "binaryname"]
    assert len(spellings) == 1
    assert default(after) in new
    assert _rest(before, name) == _rest(after, name)


def _rest(dump: dict, name: str) -> dict:
    """Return all but the handler and what only tells how the files are laid out."""
    rest = {key: value for key, value in dump.items() if key not in ("imports", "version")}
    plugins = dict(rest["plugins"])
    for key in ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"):
        if "containerd" not in plugins.get(key, {}):
            continue
        table = dict(plugins[key])
        containerd = dict(table["containerd"])
        containerd["runtimes"] = {
            known: plain(runtime)
            for known, runtime in containerd["runtimes"].items()
            if known != name
        }
        plugins[key] = {**table, "containerd": containerd}
    rest["plugins"] = plugins
    return rest
