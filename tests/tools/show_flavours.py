# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write docs/containerd-flavours.md: before, after, and what the real containerd makes of it.

``python -m tests.tools.show_flavours --write`` writes it, without it the text is printed. The test
tests/integration/engines/test_show_flavours.py sees that it is up to date.
"""

from __future__ import annotations

import difflib
import importlib
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# Makes this checkout the collection.
importlib.import_module("tests.conftest")
fixture = importlib.import_module("tests.unit.fixtures.flavour_node")
crio_fixture = importlib.import_module("tests.unit.fixtures.crio")
judge = importlib.import_module("tests.integration.engines.containerd_inputs.judge")

DOCUMENT = Path(__file__).parents[2] / "docs" / "containerd-flavours.md"
TITLES = {"k3s": "k3s", "rke2": "RKE2", "k0s": "k0s", "microk8s": "MicroK8s"}
# The newer generation first. (MicroK8s with 1.6 has the same as with 1.7.)
ORDER = sorted(
    (kind for kind in fixture.NODES if kind[2] != "1.6"),
    key=lambda kind: (list(TITLES).index(kind[0]), -float(kind[2])),
)
HEAD = """\
<!--
Copyright (c) 2026 kubegpu.nodes contributors
GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
SPDX-License-Identifier: GPL-3.0-or-later
-->

# Flavours of containerd: before and after

Made by `python -m tests.tools.show_flavours --write`; a test sees that it is up to date. What each
table means is in [containerd](containerd.md).

*Before* is an excerpt of what the distribution has: version, imports, and the tables of runtimes.
*Written* is all that `containerd_runtime` with `name: gpu` changes, as a diff. *In effect* is what
the **real containerd** of the generation says, by `containerd config dump`: before, and after the
distribution was restarted. The distributions themselves are stand-ins, made after their sources
(the whole files: `tests/unit/fixtures/flavours`).
"""
_LEFT_OUT = "# ..."
_TABLE = re.compile(r"^\s*\[")
_WANTED = re.compile(r"^\s*\[plugins\..*(?:\.containerd\]|\.runtimes[.\]])")
_ROOT = re.compile(r"^(?:version|imports)\b|^# k0s_managed")


def main(arguments: list[str]) -> int:
    text = "\n".join(document())
    if arguments == ["--write"]:
        DOCUMENT.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


def document() -> Iterator[str]:
    """Return the lines of the document."""
    yield HEAD
    for kind in ORDER:
        with tempfile.TemporaryDirectory() as folder:
            yield from _flavour(Path(folder), kind)
    yield from _crio()


def _flavour(folder: Path, kind: tuple[str, int, str]) -> Iterator[str]:
    name, version, containerd = kind
    node = fixture.FlavourNode(folder, *kind, binary=judge.binary(containerd))
    (folder / "scratch").mkdir(exist_ok=True)
    yield f"## {TITLES[name]} with containerd {containerd} (config version {version})\n"
    before, effective = _texts(node), node.judged()
    config = str(node.config).replace(str(folder), "")
    yield f"Before, `{config}`:\n"
    yield from _fence("toml", _excerpt(before[config]))
    node.ok(name="gpu")
    after = _texts(node)
    yield "Written:\n"
    for path in sorted(after):
        if after[path] != before.get(path):
            yield from _fence("diff", _diff(path, before.get(path), after[path]))
    node.started(found=False)
    yield "In effect:\n"
    yield from _effective({"before": effective, "after": node.judged()})
    if node.flavour.auto_handlers:
        node.ok(name="gpu", state="absent")
        written = _texts(node)
        answer = node.run()
        node.started()
        assert not answer.changed
        assert written.keys() == _texts(node).keys()
        yield f"`nvidia`, the default name, {TITLES[name]} makes itself, so nothing is written:\n"
        yield from _effective({"restarted": node.judged()})


def _texts(node: Any) -> dict[str, str]:
    """Return the files of the node, with its own paths."""
    folder = str(node.folder)
    return {
        f"/{name}": content.decode().replace(folder, "")
        for name, (content, _mode) in node.files().items()
    }


def _excerpt(text: str) -> str:
    """Return version, imports and the tables of runtimes; what is left out shows."""
    lines: list[str] = []
    wanted, in_root = True, True
    for line in text.splitlines():
        if _TABLE.match(line):
            wanted, in_root = bool(_WANTED.match(line)), False
        if not line.strip() or (in_root and not _ROOT.match(line)):
            continue
        if wanted:
            lines.append(line)
        elif lines[-1:] != [_LEFT_OUT]:
            lines.append(_LEFT_OUT)
    return "\n".join(lines)


def _diff(path: str, before: str | None, after: str) -> str:
    lines = difflib.unified_diff(
        (before or "").splitlines(),
        after.splitlines(),
        path if before is not None else "/dev/null",
        path,
        lineterm="",
    )
    return "\n".join(line.rstrip() for line in lines)


def _effective(dumps: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "| | handler | type | program | SystemdCgroup | default |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for when, dump in dumps.items():
        default = judge.default(dump)
        for name, runtime in sorted(judge.runtimes(dump).items()):
            options = {key.lower(): value for key, value in runtime.get("options", {}).items()}
            runc = runtime["runtime_type"] == "io.containerd.runc.v2"
            program = options.get("binaryname") or ("runc" if runc else "")
            cells = [
                when,
                f"`{name}`",
                f"`{runtime['runtime_type']}`",
                f"`{program}`" if program else "its own",
                str(bool(options.get("systemdcgroup"))).lower() if runc else "",
                "yes" if name == default else "",
            ]
            yield f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")
    yield ""


def _crio() -> Iterator[str]:
    """CRI-O: by the module's own rules, which are those of its source."""
    types = importlib.import_module(
        "ansible_collections.kubegpu.nodes.plugins.module_utils._crio.types"
    )
    flow = importlib.import_module(
        "ansible_collections.kubegpu.nodes.plugins.module_utils._crio.apply"
    )
    state = importlib.import_module(
        "ansible_collections.kubegpu.nodes.plugins.module_utils._record.store"
    )
    command = importlib.import_module(
        "ansible_collections.kubegpu.nodes.plugins.module_utils._host.command"
    )
    with tempfile.TemporaryDirectory() as folder:
        drop_ins = Path(folder) / "etc/crio/crio.conf.d"
        drop_ins.mkdir(parents=True)
        (drop_ins / "10-crio.conf").write_text(crio_fixture.PACKAGED)
        request = types.Request(
            config_path=f"{folder}/etc/crio/crio.conf",
            drop_in_path=str(drop_ins / "99-nvidia.toml"),
        )
        dependencies = flow.Dependencies(
            lambda argv, timeout=60, environment=None: command.Result(0, "", ""),
            tomllib.loads,
            state.StateStore(f"{folder}/state/state.json"),
            lambda path: True,
        )
        flow.CrioRuntime(request, flow.Settings(), dependencies)(False)
        written = (drop_ins / "99-nvidia.toml").read_text()
    yield "## CRI-O\n"
    yield "No CRI-O was there to judge it: its packages' file, and what `crio_runtime` writes.\n"
    yield "Before, `/etc/crio/crio.conf.d/10-crio.conf`:\n"
    yield from _fence("toml", crio_fixture.PACKAGED.rstrip())
    yield "Written:\n"
    path = types.Request.drop_in_path
    yield from _fence("diff", _diff(path, None, written))


def _fence(language: str, text: str) -> Iterator[str]:
    yield f"```{language}\n{text}\n```\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
