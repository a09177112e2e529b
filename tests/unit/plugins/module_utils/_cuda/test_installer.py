# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.installer import explain_installer


def test_words_of_the_installer():
    log = "[INFO]: Driver not selected\n[ERROR]: Install of toolkit failed, quitting\n"
    error = explain_installer("12.2", "/usr/local/cuda-12.2", "", log)
    assert error.evidence == "[ERROR]: Install of toolkit failed, quitting"
    assert "is as it was" in error.cause
