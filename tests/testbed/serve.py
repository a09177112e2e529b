# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Serve a folder over http on one address: ``python -m tests.testbed.serve DIR ADDRESS PORT``."""

from __future__ import annotations

import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

if __name__ == "__main__":
    folder, address, port = sys.argv[1:]
    handler = functools.partial(SimpleHTTPRequestHandler, directory=folder)
    ThreadingHTTPServer((address, int(port)), handler).serve_forever()
