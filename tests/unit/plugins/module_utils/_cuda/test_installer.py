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


def test_a_full_disk():
    """Of Jimver/cuda-toolkit 392, and of the shell that unpacks the file."""
    log = (
        "[INFO]: Installing: libnpp-dev\n[ERROR]: boost::filesystem::copy_file: No space left on "
        'device: "./builds/libnpp/targets/x86_64-linux/lib/libnppif_static.a"'
    )
    for output, given in (("", log), ("tar: x: Cannot write: No space left on device", "")):
        error = explain_installer("12.8", "/usr/local/cuda-12.8", output, given)
        assert "too little disk space" in error.cause and "No space left" in error.evidence
