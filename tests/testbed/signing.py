# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keys of the testbed's package repositories."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.testbed.paths import cache
from tests.testbed.shell import run


def sign(top: Path, pool: Path, owner: str) -> None:
    """Sign with the owner's key, made at first use and kept: a key is no build product.

    The key and its fingerprint go to top, the signatures beside the file Release in pool.
    """
    home = cache() / "repository" / "keys" / hashlib.sha256(owner.encode()).hexdigest()[:8]
    gpg = ["gpg", "--homedir", str(home), "--batch", "--yes", "--pinentry-mode", "loopback"]
    user = f"{owner} <testbed@example.invalid>"
    if not home.is_dir():
        home.mkdir(parents=True)
        home.chmod(0o700)
        run([*gpg, "--passphrase", "", "--quick-gen-key", user, "rsa3072", "sign", "never"])
    try:
        run([*gpg, "--clearsign", "--output", str(pool / "InRelease"), str(pool / "Release")])
        run(
            [*gpg, "--armor", "--detach-sign", "--output", str(pool / "Release.gpg"),
             str(pool / "Release")]
        )  # fmt: skip
        run([*gpg, "--armor", "--export", "--output", str(top / "gpgkey")])
        listing = run([*gpg, "--with-colons", "--fingerprint"]).stdout
    finally:
        run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)
    fingerprints = [line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:")]
    (top / "fingerprint").write_text(fingerprints[0] + "\n")
