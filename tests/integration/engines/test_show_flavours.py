# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The document that shows the distributions says what the real containerd says now."""

from __future__ import annotations

import pytest

from tests.tools.show_flavours import DOCUMENT, ORDER, document


@pytest.mark.full(why="the document shows what test_containerd_flavours judges")
def test_the_document_is_up_to_date():
    text = "\n".join(document())
    assert DOCUMENT.read_text(encoding="utf-8") == text, (
        "python -m tests.tools.show_flavours --write"
    )


def test_every_distribution_is_shown_with_our_handler_in_effect():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert {name for name, _version, _containerd in ORDER} == {"k3s", "rke2", "k0s", "microk8s"}
    assert text.count("| after | `gpu` | `io.containerd.runc.v2` |") == len(ORDER)
