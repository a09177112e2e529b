# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files and the link of the CUDA toolkits: paths and texts. Nothing is read or written."""

from __future__ import annotations

from collections.abc import Sequence

LOADER = "/etc/ld.so.conf.d/kubegpu-cuda.conf"
PROFILE = "/etc/profile.d/kubegpu-cuda.sh"

# The files that the plan writes; the facts have the sha256 of each that is there.
PATHS = (LOADER, PROFILE)

# The default toolkit, and the folder that each version has.
LINK = "/usr/local/cuda"
PREFIX = "/usr/local/cuda-"

_HEADER = "# Written by kubegpu.nodes.cuda_toolkit.\n"


def folder(version: str) -> str:
    """Return where a version is installed; one folder for each minor version."""
    return PREFIX + ".".join(version.split(".")[:2])


def loader_text(default: str, others: Sequence[str]) -> str:
    """Return the loader's configuration: libraries of the default first, then of the others.

    :param default: the default's folder, or its link.
    :param others: the folders of the other versions, newest first.
    """
    return _HEADER + "".join(f"{path}/lib64\n" for path in (default, *others))


def profile_text(default: str) -> str:
    """Return the shell's profile. A variable that the user has set stays; nothing comes twice."""
    return f"""{_HEADER}if [ -d {default}/bin ]; then
  CUDA_HOME="${{CUDA_HOME:-{default}}}"
  export CUDA_HOME
  case ":${{PATH}}:" in
    *":{default}/bin:"*) ;;
    *) PATH="{default}/bin${{PATH:+:${{PATH}}}}"; export PATH ;;
  esac
fi
"""


def distro_profile_text() -> str:
    """Return the profile beside the distribution's own package: it only says that all is done."""
    return f"{_HEADER}# CUDA is the distribution's own, in /usr: nothing has to be set.\n"
