# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cluster puts into each namespace keeps none of them."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.automatic import is_automatic

TOKEN, LOGIN = "kubernetes.io/service-account-token", "kubernetes.io/dockercfg"


@pytest.mark.parametrize(
    ("kind", "name", "type_of_secret", "automatic"),
    [
        ("ConfigMap", "kube-root-ca.crt", "", True),
        ("ConfigMap", "openshift-service-ca.crt", "", True),
        ("ConfigMap", "istio-ca-root-cert", "", True),
        ("ConfigMap", "settings", "", False),
        ("ServiceAccount", "default", "", True),
        ("ServiceAccount", "deployer", "", True),
        ("ServiceAccount", "web", "", False),
        ("Secret", "web-token-x", TOKEN, True),
        ("Secret", "builder-dockercfg-xcscw", LOGIN, True),
        ("Secret", "builder-dockercfg-xcscw", "Opaque", False),
        ("Secret", "web-dockercfg-xcscw", LOGIN, False),
        # The name of one kind says nothing of another.
        ("Pod", "default", "", False),
        ("Secret", "kube-root-ca.crt", "Opaque", False),
    ],
)
def test_what_the_cluster_makes_by_itself(kind, name, type_of_secret, automatic):
    assert is_automatic(kind, name, type_of_secret) is automatic
