# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster's own certificate authority, and kubeconfigs with certificates that it signed."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 365


@dataclass(frozen=True)
class Authority:
    """A folder with ``ca.crt`` and ``ca.key``, and what was signed."""

    home: Path

    @property
    def certificate(self) -> Path:
        return self.home / "ca.crt"

    @classmethod
    def make(cls, home: Path, name: str = "kubegpu-testbed") -> Authority:
        """Make a new one."""
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(subject, subject, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        _write_key(home / "ca.key", key)
        (home / "ca.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return cls(home)

    def sign(
        self, name: str, common_name: str, groups: Sequence[str] = (), names: Sequence[str] = ()
    ) -> tuple[Path, Path]:
        """Certificate and key for a client and, under these names and addresses, a server."""
        authority = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        signer = serialization.load_pem_private_key((self.home / "ca.key").read_bytes(), None)
        if not isinstance(signer, ec.EllipticCurvePrivateKey):
            raise TypeError("the authority's key is not ours")
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(x509.Name(attributes), authority.subject, key)
        if names:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(one) for one in names]), critical=False
            )
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(
                # Python verifies strictly from 3.13 on, and then wants it.
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
                critical=False,
            )
            .sign(signer, hashes.SHA256())
        )
        path = self.home / f"{name}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(path.with_suffix(".key"), key)
        return path, path.with_suffix(".key")

    def kubeconfig(self, path: Path, server: str, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig that stands alone: authority, certificate and key are in it."""
        certificate, key = self.sign(f"client-{path.name}", user, groups)
        data = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "testbed",
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": _base64(self.certificate),
                    },
                }
            ],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate-data": _base64(certificate),
                        "client-key-data": _base64(key),
                    },
                }
            ],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
            "current-context": "testbed",
        }
        _write_private(path, yaml.safe_dump(data, sort_keys=False).encode())
        return path


def signing_key(path: Path) -> Path:
    """A key with which tokens of service accounts are signed."""
    _write_key(path, ec.generate_private_key(ec.SECP256R1()))
    return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    # Kubernetes 1.20 reads keys of service accounts in this form only.
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    _write_private(path, text)


def _write_private(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(content)
