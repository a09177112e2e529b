# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths and contents of the files of the CUDA toolkits. Pure."""

from __future__ import annotations

from collections.abc import Sequence

LOADER = "/etc/ld.so.conf.d/kubegpu-cuda.conf"
PROFILE = "/etc/profile.d/kubegpu-cuda.sh"

# The files that the plan writes; the facts hold the sha256 of each existing one.
PATHS = (LOADER, PROFILE)

# The link to the default toolkit, and the prefix of the folder of each version.
LINK = "/usr/local/cuda"
PREFIX = "/usr/local/cuda-"

_HEADER = "# Written by kubegpu.nodes.cuda_toolkit.\n"


def folder(version: str) -> str:
    """Return the folder of a version; each minor version has one."""
    return PREFIX + ".".join(version.split(".")[:2])


def loader_text(default: str, others: Sequence[str]) -> str:
    """Return the loader's configuration, with the libraries of the default version first.

    :param default: the default's folder, or its link.
    :param others: the folders of the other versions, newest first.
    """
    return _HEADER + "".join(f"{path}/lib64\n" for path in (default, *others))


def profile_text(default: str) -> str:
    """Return the shell's profile. It keeps a CUDA_HOME that is set, and adds to PATH only once."""
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
    """Return the profile for the distribution's package, which needs no settings."""
    return f"{_HEADER}# CUDA is the distribution's own, in /usr: nothing has to be set.\n"
