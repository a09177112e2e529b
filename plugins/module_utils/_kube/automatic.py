# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects that a cluster puts into every namespace. They keep no namespace alive.

Sources, read 2026-11-28: kubernetes (kube-root-ca.crt, the account default);
openshift-service-ca.crt on a real MicroShift 1.36; istio/istio, CACertNamespaceConfigMap; lists of
secrets of OpenShift's namespaces in public reports.
"""

from __future__ import annotations

CONFIG_MAP, SECRET, SERVICE_ACCOUNT = "ConfigMap", "Secret", "ServiceAccount"

_NAMES = {
    CONFIG_MAP: ("kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"),
    # Those of OpenShift are builder and deployer.
    SERVICE_ACCOUNT: ("default", "builder", "deployer"),
}
_TOKEN = "kubernetes.io/service-account-token"
_LOGIN = "kubernetes.io/dockercfg"


def is_automatic(kind: str, name: str, type_of_secret: str = "") -> bool:
    """Return whether the cluster makes such an object in each namespace."""
    if kind == SECRET:
        # OpenShift gives each account a secret for its own registry.
        accounts = tuple(f"{account}-dockercfg-" for account in _NAMES[SERVICE_ACCOUNT])
        return type_of_secret == _TOKEN or (type_of_secret == _LOGIN and name.startswith(accounts))
    return name in _NAMES.get(kind, ())
