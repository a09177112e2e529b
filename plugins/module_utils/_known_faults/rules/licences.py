# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages about the licence of a virtual GPU: nvidia-gridd, and single lines of nvidia-smi.

The whole output of nvidia-smi names the GPU: ``documents/nvidia_smi_judge.py``.
"""

from __future__ import annotations

from ..._core.finding import POSSIBLE, WARNING
from ..common import LICENCE_FILES, LICENCE_STEP, VGPU_UNLICENSED
from ..types import Rule

_READ = "2026-11-28"
_DAEMON = "nvidia-gridd"
_SMI = "nvidia-smi -q"
_ACQUIRED = r"License acquired successfully"
_REDUCED = (
    "the driver reduces the performance of the guest's virtual GPUs, and CUDA programs can fail "
    "with 'busy or unavailable'."
)

# What nvidia-gridd says of a request that failed, with the server, the licence and the reason. The
# log that it writes on its own has no name of the program in a line.
_FAILED = (
    r"Failed to acquire license from (?P<server>[\w.:-]{1,253}) {1,2}\(Info: "
    r"(?P<licence>[^\n()]{1,80}?) - Error: [^\n]{0,120}?"
)
_SYSLOG = r"\bnvidia-gridd\b[^\n]{0,40}?: "
_TOKEN_STEP = (
    "Download the client configuration token again from the licence portal or your DLS, put it "
    "into /etc/nvidia/ClientConfigToken and restart nvidia-gridd, or give it to the role "
    "nvidia_driver (nvidia_driver_licence.token_path)."
)
#: The first that matches counts: the reason, if the daemon names it.
LICENCES = (
    Rule(
        VGPU_UNLICENSED,
        _FAILED + r"(?:SSL peer certificate|SSL certificate|SSL connect error|certificate)",
        _DAEMON,
        "nvidia-gridd does not accept the certificate of the licence server {server}, and the "
        "guest gets no licence: " + _REDUCED,
        "Compare the certificate's names and dates with the address in the token and the node's "
        "clock: openssl s_client -connect {server}:443, and timedatectl. Renew the certificate on "
        "the licence server (DLS) if it is over or has another name; a proxy that decrypts TLS "
        "must leave out this address.",
        "nvidia-gridd[512]: Failed to acquire license from dls.example (Info: NVIDIA Virtual "
        "Compute Server - Error: SSL peer certificate or SSH remote key was not OK)",
        "a report to this project, 2026-11; the reason is a text of libcurl "
        "(CURLE_PEER_FAILED_VERIFICATION)",
        _READ,
        over=_ACQUIRED,
    ),
    Rule(
        VGPU_UNLICENSED,
        _FAILED + r"(?:time to process response has expired|Clock windback)",
        _DAEMON,
        "The clocks of this node and of the licence server {server} differ, or the token is too "
        "old, and the guest gets no licence: " + _REDUCED,
        "Compare both clocks with the right time, the time zone included (timedatectl), correct "
        "them, and restart nvidia-gridd. If they are right, download the client configuration "
        "token again.",
        "nvidia-gridd[512]: Failed to acquire license from dls.example (Info: NVIDIA Virtual "
        "Compute Server - Error: The allowed time to process response has expired)",
        "FastAPI-DLS, its list of questions; a public note of a cluster with api.cls.licensing."
        "nvidia.com, 2023-06 (Clock windback has been detected)",
        _READ,
        over=_ACQUIRED,
    ),
    Rule(
        VGPU_UNLICENSED,
        _FAILED + r"(?:No pool features found|insufficient[^\n)]{0,40}licen)",
        _DAEMON,
        "The licence server {server} has no licence of the kind {licence} left, or none in the "
        "pool of this token: " + _REDUCED,
        "See on the licence server which licences its pools have and which guests lease them; add "
        "licences of that kind, release leases, or download a token of the pool that has some. The "
        "type of the vGPU, or FeatureType in /etc/nvidia/gridd.conf, decides which kind is asked "
        "for.",
        "Failed to acquire license from api.cls.licensing.nvidia.com (Info: NVIDIA RTX Virtual "
        "Workstation - Error: No pool features found for : NVIDIA RTX Virtual Workstation)",
        "a public note of a guest with api.cls.licensing.nvidia.com, 2025-01; a report to this "
        "project, 2026-11 (insufficient number of licenses)",
        _READ,
        over=_ACQUIRED,
    ),
    Rule(
        VGPU_UNLICENSED,
        rf"{_SYSLOG}(?:Failed to decode signature from token|Failed to read configurations from "
        r"client configuration token)",
        _DAEMON,
        "The file in /etc/nvidia/ClientConfigToken is not a client configuration token, or it is "
        "damaged, and the guest gets no licence: " + _REDUCED,
        _TOKEN_STEP,
        "nvidia-gridd[1039]: Failed to read configurations from client configuration token",
        "a public journal of a guest, 2025-03",
        _READ,
        over=_ACQUIRED,
    ),
    Rule(
        VGPU_UNLICENSED,
        rf"{_SYSLOG}Unable to fetch the client configuration token file",
        _DAEMON,
        "No client configuration token is in /etc/nvidia/ClientConfigToken, and the guest gets no "
        "licence: " + _REDUCED,
        _TOKEN_STEP,
        "nvidia-gridd[1985]: Unable to fetch the client configuration token file",
        "a public guide of a research cloud, 2024-10",
        _READ,
        over=_ACQUIRED,
    ),
    Rule(
        VGPU_UNLICENSED,
        rf"{_SYSLOG}Invalid feature type requested",
        _DAEMON,
        "FeatureType in /etc/nvidia/gridd.conf is missing, or is none that this driver knows, and "
        "nvidia-gridd asks for no licence: " + _REDUCED,
        "Set FeatureType=1 for a vGPU (2 or 4 for a whole GPU) and, without a client configuration "
        "token, ServerAddress of the legacy licence server; then restart nvidia-gridd. The role "
        "nvidia_driver writes the file (nvidia_driver_licence). The file that is read is "
        "gridd.conf, not gridd.conf.template.",
        "nvidia-gridd[5805]: Invalid feature type requested",
        "github.com/MicrosoftDocs/azure-docs/issues/32746; "
        "github.com/MicrosoftDocs/azure-docs/pull/2495",
        _READ,
        over=_ACQUIRED,
    ),
    Rule(
        VGPU_UNLICENSED,
        rf"{_SYSLOG}Failed to acquire license(?: from (?P<server>[\w.:-]{{1,253}}))?",
        _DAEMON,
        "nvidia-gridd got no licence from the licence server {server}: " + _REDUCED,
        LICENCE_FILES,
        "nvidia-gridd: Failed to acquire license from 192.0.2.10",
        "github.com/NVIDIA/nvidia-docker/issues/1787",
        _READ,
        over=_ACQUIRED,
    ),
    Rule(
        VGPU_UNLICENSED,
        rf"{_SYSLOG}Failed to register client\b|Valid GRID license not found",
        _DAEMON,
        "nvidia-gridd got no licence: " + _REDUCED,
        LICENCE_FILES,
        "nvidia-gridd: Valid GRID license not found. GPU features and performance are restricted. "
        "To enable full functionality please configure licensing details.",
        "github.com/NVIDIA/nvidia-docker/issues/1787; a public syslog of driver 550.54.15, 2024-05",
        _READ,
        over=_ACQUIRED,
    ),
    Rule(
        VGPU_UNLICENSED,
        # ServerAddress alone is missing in a guest with a token, which is right.
        rf"{_SYSLOG}(?:Configuration parameter \([^)\n]{{0,60}}\bFeatureType\b[^)\n]{{0,60}}\) not"
        r" set|Unable to open directory /etc/nvidia/license\b)",
        _DAEMON,
        "/etc/nvidia/gridd.conf has no FeatureType or names no licence server. A guest with a "
        "client configuration token can get its licence without them.",
        "See whether the guest has a licence (nvidia-smi -q, License Status). If not: "
        + LICENCE_FILES,
        "nvidia-gridd[5805]: Configuration parameter ( ServerAddress  FeatureType) not set",
        "github.com/MicrosoftDocs/azure-docs/issues/32746",
        _READ,
        severity=WARNING,
        confidence=POSSIBLE,
        over=_ACQUIRED,
    ),
)

#: Only where the output that names the GPU is not in the text.
LICENCE_LINES = (
    Rule(
        VGPU_UNLICENSED,
        r"License Status {0,60}: {0,4}Unlicensed(?! \(Unrestricted\))",
        _SMI,
        "A virtual GPU of this guest has no licence: " + _REDUCED,
        LICENCE_STEP,
        "License Status                    : Unlicensed (Restricted)",
        "github.com/NVIDIA/gpu-operator/issues/628, 220",
        _READ,
        last_resort=True,
    ),
    Rule(
        VGPU_UNLICENSED,
        r"License Status {0,60}: {0,4}Unlicensed \(Unrestricted\)",
        _SMI,
        "A virtual GPU of this guest has no licence. It still has its full performance; some time "
        "after the driver was loaded (20 minutes according to NVIDIA's documentation) the driver "
        "reduces it.",
        LICENCE_STEP,
        "License Status                    : Unlicensed (Unrestricted)",
        "github.com/NVIDIA/DCGM, dcgmlib",
        _READ,
        severity=WARNING,
        last_resort=True,
    ),
)
