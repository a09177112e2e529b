# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Both editors over made configurations, judged by the real containerd and dockerd.

Fewer of them than in tests/unit/properties, where parsers are the oracles: each starts a big
program twice. Config version 4 has no containerd here that reads it.
"""

from __future__ import annotations

import subprocess
import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.config import (
    Effective,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.plan import plan_present
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import Request, State
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import config as docker
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.daemon import parse_version
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.record import Record
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.types import (
    Request as DockerRequest,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.config_file import ConfigFile
from tests.integration.engines.containerd_inputs.judge import CACHE, binary, default
from tests.integration.engines.containerd_inputs.judge import judge as judge_dumps
from tests.unit.engine_documents import containerd_configs, daemon_configs, examples

RELEASES = {(1, 6): "1.6", (1, 7): "1.7", (2, 1): "2.1"}


def dump(program, text):
    """Return what containerd makes of a configuration, None where it does not load it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        path.write_bytes(text.encode())
        answer = subprocess.run(
            [program, "--config", str(path), "config", "dump"],
            capture_output=True,
            text=True,
            check=False,
        )
    return tomllib.loads(answer.stdout) if answer.returncode == 0 else None


@pytest.mark.parametrize("release", RELEASES, ids=RELEASES.values())
def test_containerd(release):
    program = binary(RELEASES[release])

    @examples(30)
    @given(containerd_configs(containerd=release, plain=True), st.booleans())
    def every_one(made, set_default):
        before = dump(program, made.text)
        assert before is not None, "the made configuration itself does not load"
        node = State(
            version=release,
            files=(ConfigFile("/c.toml", made.text, tomllib.loads(made.text)),),
            drop_in=ConfigFile("/d.toml", None, {}),
            effective=Effective(before),
        )
        request = Request(set_default=set_default, layout="in_place")
        edits = plan_present(request, node, tomllib.loads).edits
        after = dump(program, edits[0].after) if edits else before
        assert after is not None
        was = default(before)
        if set_default:
            assert default(after) == "nvidia"
            for one in (before, after):
                for plugin in one["plugins"].values():
                    plugin.get("containerd", {}).pop("default_runtime_name", None)
                    if "containerd" in plugin:
                        plugin["containerd"]["default_runtime_name"] = "nvidia"
        judge_dumps(before, after, was=was)

    every_one()


def dockerd(version):
    path = CACHE / "validators" / f"docker-{version}" / "bin" / "dockerd"
    if not path.exists():
        pytest.skip(f"no dockerd {version}: python -m tests.testbed validators")
    return str(path)


# Older ones have no --validate.
@pytest.mark.parametrize("version", ["26.1", "28.5"])
def test_docker(version, tmp_path):
    program, config = dockerd(version), tmp_path / "daemon.json"

    def loads(text):
        config.write_bytes(text.encode())
        answer = subprocess.run(
            [program, "--validate", f"--config-file={config}"],
            capture_output=True,
            text=True,
            check=False,
        )
        return answer.returncode == 0, answer.stderr

    @examples(15)
    @given(daemon_configs(odd=False), st.booleans())
    def every_one(text, set_default):
        wish = DockerRequest(
            "nvidia", True, "/usr/bin/nvidia-container-runtime", None, set_default, None
        )
        numbers = parse_version(version)
        document = docker.read(text, "daemon.json", numbers)
        edited = docker.configure(document, wish, Record(), numbers).document.text
        good, words = loads(text)
        assert good, f"the made configuration itself is refused: {words}"
        good, words = loads(edited)
        assert good, words

    every_one()
