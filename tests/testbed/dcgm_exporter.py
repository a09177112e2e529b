# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for NVIDIA's DCGM exporter: its text format and labels, made values, no GPU.

Usage: dcgm_exporter.py PORT HOST GPUS [NAMESPACE/POD]. The pod is the one that uses the first GPU;
the others have no labels of a pod, as with the real one. The node's label is that of 4.8.3 and
later.
"""

from __future__ import annotations

import http.server
import sys

GAUGES = {"DCGM_FI_DEV_GPU_TEMP": 40, "DCGM_FI_DEV_FB_USED": 1024, "DCGM_FI_DEV_GPU_UTIL": 7}


def text(host: str, gpus: int, user: str) -> str:
    """Return the page of metrics."""
    lines = []
    for name, value in GAUGES.items():
        lines += [f"# HELP {name} made by a stand-in", f"# TYPE {name} gauge"]
        for number in range(gpus):
            namespace, _slash, pod = user.partition("/") if number == 0 else ("", "", "")
            labels = {
                "gpu": str(number),
                "UUID": f"GPU-standin-{host}-{number}",
                "pci_bus_id": f"00000000:{number + 1:02X}:00.0",
                "device": f"nvidia{number}",
                "modelName": "stand-in",
                "hostname": host,
                "DCGM_FI_DRIVER_VERSION": "580.95.05",
                **({"container": "main", "namespace": namespace, "pod": pod} if pod else {}),
            }
            inside = ",".join(f'{key}="{one}"' for key, one in labels.items())
            lines.append(f"{name}{{{inside}}} {value}")
    return "\n".join([*lines, ""])


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers like the exporter: ``/metrics`` and ``/health``."""

    page = ""

    def do_GET(self) -> None:
        found = {"/metrics": self.page, "/health": "KO\n"}.get(self.path)
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.end_headers()
        self.wfile.write((found or "").encode())

    def log_message(self, *_arguments: object) -> None:
        """Write no log."""


def main() -> None:
    port, host, gpus, *user = sys.argv[1:]
    Handler.page = text(host, int(gpus), user[0] if user else "")
    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
