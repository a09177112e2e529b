# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins for kernel modules and libraries: ELF files that hold nothing but what says so."""

from __future__ import annotations

import struct

_RELOCATABLE, _SHARED, _X86_64 = 1, 3, 62


def module(
    name: str, version: str, kernel: str, licence: str, depends: str = "", srcversion: str = ""
) -> bytes:
    """A kernel module as depmod, modinfo and the facts see it; no kernel would load it."""
    words = [
        *([f"srcversion={srcversion}"] if srcversion else []),
        f"license={licence}",
        *([f"version={version}"] if version else []),
        f"depends={depends}",
        f"name={name}",
        f"vermagic={kernel} SMP preempt mod_unload modversions ",
        "standin=made by the testbed of kubegpu.nodes",
    ]
    text = b"".join(word.encode() + b"\0" for word in words)
    return _elf(_RELOCATABLE, b".modinfo", text)


def library(name: str, version: str) -> bytes:
    """A shared library that ldconfig knows as one; nothing can be called in it."""
    return _elf(_SHARED, b".standin", f"stand-in for {name} {version}".encode() + b"\0")


def _elf(kind: int, name: bytes, content: bytes) -> bytes:
    """An ELF file for x86-64 with one section beside the null one and the names."""
    names = b"\0" + name + b"\0.shstrtab\0"
    body = content + b"\0" * (-len(content) % 8) + names
    body += b"\0" * (-len(body) % 8)
    table = 64 + len(body)
    at_names = 64 + len(content) + (-len(content) % 8)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        *(kind, _X86_64, 1, 0, 0, table, 0),
        *(64, 56, 0, 64, 3, 2),
    )

    def section(index: int, kind: int, offset: int, size: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", index, kind, 2, 0, offset, size, 0, 0, 1, 0)

    sections = bytes(64) + section(1, 1, 64, len(content))
    sections += section(len(name) + 2, 3, at_names, len(names))
    return header + body + sections
