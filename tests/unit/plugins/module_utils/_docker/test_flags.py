# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker import config
from ansible_collections.kubegpu.nodes.plugins.module_utils._docker.flags import (
    FlagSource,
    check_flags,
    environment_source,
    parse_flags,
    unit_sources,
)

NAME = "daemon.json"
FILE = json.dumps({"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}})


def read(text):
    return config.read(text, NAME, (28, 5, 2))


UNIT = """# /lib/systemd/system/docker.service
[Service]
EnvironmentFile=-/etc/default/docker
ExecStart=/usr/sbin/dockerd -H fd:// \\
    --default-runtime=runc $DOCKER_OPTS

# /etc/systemd/system/docker.service.d/10-flags.conf
[Service]
Environment="MORE=--add-runtime=a=/a"
ExecStart=
ExecStart=/usr/sbin/dockerd --feature cdi=true
"""


def test_unit_names_the_file_that_gives_each_flag():
    sources, files = unit_sources(UNIT)
    assert files == ["/etc/default/docker"]
    drop_in = "/etc/systemd/system/docker.service.d/10-flags.conf"
    assert [source.where for source in sources] == [drop_in, drop_in]
    assert parse_flags(sources[0].arguments) == {"feature": ("cdi=true",)}
    assert parse_flags(sources[1].arguments) == {"add-runtime": ("a=/a",)}


def test_command_that_a_drop_in_takes_back_does_not_count():
    sources, _files = unit_sources(UNIT)
    check_flags(read('{"default-runtime": "runc"}'), NAME, NAME, sources)


def test_environment_file_is_read_without_its_comments():
    text = '# DOCKER_OPTS="--default-runtime=a"\nDOCKER_OPTS="-H x --add-runtime n=/n"\n'
    source = environment_source("/etc/default/docker", text)
    assert parse_flags(source.arguments) == {"add-runtime": ("n=/n",)}


@pytest.mark.parametrize(
    ("flag", "text", "conflict"),
    [
        ("--default-runtime=x", '{"default-runtime": "y"}', True),
        ("--default-runtime=x", FILE, False),
        ("--add-runtime=x=/x", FILE, True),
        ("--add-runtime=x=/x", '{"runtimes": null}', False),
        ("--feature=a=true", '{"features": {}}', True),
        ("--feature=a=true", FILE, False),
        ("--log-level=debug", '{"log-level": "info"}', False),
    ],
)
def test_conflict(flag, text, conflict):
    source = FlagSource("/u/docker.service", ("dockerd", flag))
    if not conflict:
        check_flags(read(text), NAME, NAME, [source])
        return
    with pytest.raises(InputError) as caught:
        check_flags(read(text), NAME, NAME, [source])
    name, _equals, value = flag.partition("=")
    assert caught.value.evidence == f"/u/docker.service: {name} {value}"


def test_other_configuration_file_is_named():
    source = FlagSource("/u", ("dockerd", "--config-file", "/etc/other.json"))
    with pytest.raises(InputError, match=r"Set config_path: /etc/other\.json"):
        check_flags(read("{}"), "/etc/docker/daemon.json", "/real.json", [source])
    check_flags(read("{}"), "/link.json", "/etc/other.json", [source])
