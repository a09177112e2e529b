# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask an API server which rights its user lacks. Each user may ask it for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .api import Cluster
from .errors import KubeError

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_VERSION = "authorization.k8s.io/v1"


def lacking(cluster: Cluster, rights: Sequence[Mapping[str, str]]) -> list[int]:
    """Return the positions of the rights that the user does not have.

    A review of each right is exact with each kind of authorization; the one request that lists all
    rights (SelfSubjectRulesReview) is incomplete with a webhook.

    :param rights: ``namespace``, ``group``, ``resource``, ``name`` and ``verb``, each may be empty.
    :raises KubeError: the API server does not answer such reviews.
    """
    allowed = cluster.each(lambda right: _is_allowed(cluster, right), rights)
    for answer in allowed:
        if isinstance(answer, KubeError):
            raise answer
    return [number for number, answer in enumerate(allowed) if answer is False]


def _is_allowed(cluster: Cluster, right: Mapping[str, str]) -> bool:
    resource, _slash, subresource = right["resource"].partition("/")
    attributes = {**right, "resource": resource, "subresource": subresource}
    body = {
        "apiVersion": _VERSION,
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {name: value for name, value in attributes.items() if value}
        },
    }
    answer = cluster.create(_PATH, body)
    return (answer.get("status") or {}).get("allowed") is True
