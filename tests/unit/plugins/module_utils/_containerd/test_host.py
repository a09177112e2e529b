# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read of a command line and of a command's output."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.host import (
    config_argument,
    redact_output,
)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("/usr/bin/containerd", None),
        ("/usr/bin/containerd --config /etc/x.toml", "/etc/x.toml"),
        ("/usr/bin/containerd --config=/etc/x.toml", "/etc/x.toml"),
        ("/usr/bin/containerd -c /etc/x.toml", "/etc/x.toml"),
        ("/usr/bin/containerd -c", None),
    ],
)
def test_config_argument(line, path):
    assert config_argument(tuple(line.split())) == path


def test_words_of_a_command_lose_lines_with_credentials():
    assert redact_output('line 3\npassword = "x"\nend') == "line 3\nend"
