# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TOML text without its secrets."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import MARK
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact_lines import redact_lines
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.toml_edit import Document
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.toml_redact import redact


@pytest.mark.parametrize("opening", ["[", "{a=", "[{a=", "{a=["])
@pytest.mark.parametrize("read", [redact, lambda text: Document(text).pairs])
def test_values_that_are_nested_without_end_are_refused(opening, read):
    with pytest.raises(InputError, match=r"nested too deep\.\n.*line 2:") as caught:
        read("ok = 1\na = " + opening * 100_000)
    assert len(str(caught.value)) < 300


def test_values_that_are_nested_deep_are_read():
    arrays = f"a = {'[' * 150}{']' * 150}\n"
    tables = f"b = {'{c=' * 150}{{token='x'}}{'}' * 150}\n"
    assert redact(arrays + tables) == arrays + tables.replace("'x'", f'"{MARK}"')


@pytest.mark.parametrize(
    "line",
    [
        'password = "s3cret"',
        "auth = 's3cret'",
        'identitytoken = "s3cret"',
        'Password = """s3cret"""',
        'a = { username = "u", password = "s3cret" }',
        'endpoint = ["https://user:s3cret@registry.example"]',
        '# password = "s3cret"',
        '  #auth = "s3cret"',
        '[plugins.cri.registry.headers]\nX = ["s3cret"]',
    ],
)
def test_redact(line):
    redacted = redact(f"keep = 1\nalso = 2\n{line}\n")
    assert "s3cret" not in redacted
    assert MARK in redacted
    assert "keep = 1\n" in redacted
    assert "also = 2\n" in redacted


@pytest.mark.parametrize(
    "line",
    [
        'password = "s3cret"',
        "  auth = 's3cret'",
        '"identitytoken" = "s3cret"',
        'Password = """\ns3cret"""',
        'a = { username = "u", password = "s3cret" }',
        'endpoint = ["https://user:s3cret@registry.example"]',
        '# password = "s3cret"',
        '[plugins.cri.registry.headers]\nX = ["s3cret"]',
        'registry.configs."x".auth.password = "s3cret"',
    ],
)
def test_redact_lines_of_a_template(line):
    begin = '{{ template "base" . }}\n{{ range $k, $v := .X }}\nkeep = 1\n'
    redacted = redact_lines(f"{begin}{line}\n{{{{ end }}}}\n")
    assert "s3cret" not in redacted
    assert MARK in redacted
    assert redacted.startswith(begin)
    assert redacted.endswith("{{ end }}\n")


def test_redact_lines_leaves_what_a_template_fills_in():
    text = '  {{ with .Password }}password = {{ printf "%q" . }}{{ end }}\n[a.auth]\n  x = 1\n'
    assert redact_lines(text) == text


def test_redact_leaves_other_text_alone():
    text = 'version = 2\n# the author says: auth is needed\n[a]\n  path = "/etc/x"\n  auth = ""\n'
    assert redact(text) == text
