# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The account of playbooks/files/rbac.yml on an API server, and which of its rights were used."""

from __future__ import annotations

import json

import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._kube.api import Cluster, Connection
from tests.testbed.cluster_control import ACCOUNT
from tests.unit.fixtures.rights import FILE, Right, expanded, parts_of

_ACCOUNTS = "/api/v1/namespaces/kubegpu/serviceaccounts"


def apply(plane, *parts):
    """Apply these parts of the file, as its user would; all of them if none is named."""
    plane.kubectl("apply", "-f", str(FILE), *_selector(parts))


def delete(plane, *parts, wait=True):
    """Delete these parts; the namespace belongs to ``base``."""
    plane.kubectl("delete", "--ignore-not-found", f"--wait={json.dumps(wait)}", "-f", str(FILE),
                  *_selector(parts))  # fmt: skip


def _selector(parts):
    return ["-l", f"kubegpu.nodes/rights in ({','.join(parts)})"] if parts else []


def token(plane):
    """Return a token of the account, as ``kubectl create token`` gets it."""
    admin = Cluster.connect(Connection(kubeconfig=str(plane.kubeconfig)))
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 7200},
    }
    account = ACCOUNT.rpartition(":")[2]
    return admin.create(f"{_ACCOUNTS}/{account}/token", request)["status"]["token"]


def kubeconfig(plane, path):
    """Write a kubeconfig with a token of the account; return its path."""
    data = yaml.safe_load(plane.kubeconfig.read_text())
    data["users"][0]["user"] = {"token": token(plane)}
    path.write_text(yaml.safe_dump(data))
    return str(path)


def less(part, kind, resource, verb):
    """Return a role of the file without one right."""
    (role,) = [item for item in parts_of(part) if item["kind"] == kind]
    role = json.loads(json.dumps(role))
    rules = []
    for rule in role["rules"]:
        others = [one for one in rule["resources"] if one != resource]
        verbs = [one for one in rule["verbs"] if one != verb]
        if resource not in rule["resources"] or verb not in rule["verbs"]:
            rules.append(rule)
            continue
        if others:
            rules.append({**rule, "resources": others})
        if verbs:
            rules.append({**rule, "resources": [resource], "verbs": verbs})
    return {**role, "rules": rules}


def events(plane):
    """Return the requests of the account."""
    found = [json.loads(line) for line in plane.audit_log.read_text().splitlines()]
    return [one for one in found if one["user"]["username"] == ACCOUNT and "objectRef" in one]


def refused(plane):
    """Return what the account was refused for want of a right."""
    return [
        (one["verb"], one["objectRef"], one["responseStatus"].get("message"))
        for one in events(plane)
        if one["responseStatus"]["code"] == 403
        and one["annotations"]["authorization.k8s.io/decision"] == "forbid"
    ]


def asked(plane):
    """Return the rights for which the API server asked when the account sent its requests.

    Who applies an object that does not exist needs the right to create it, and who binds a role the
    right to bind that role: the API server asks for both inside of the request.
    """
    found = set()
    for one in events(plane):
        where = one["objectRef"]
        resource = "/".join(filter(None, (where["resource"], where.get("subresource"))))
        right = Right(where.get("namespace", ""), where.get("apiGroup", ""), resource,
                      where.get("name", ""), one["verb"])  # fmt: skip
        found.add(right)
        if one["verb"] == "patch" and one["responseStatus"]["code"] == 201:
            found.add(right._replace(verb="create"))
            if resource.endswith("rolebindings"):
                # The bindings of this collection have the name of their role.
                role = resource.replace("bindings", "s")
                found.add(right._replace(resource=role, verb="bind"))
    return found


def granted_on(plane):
    """Return the rights that are in the roles which the account made."""
    text = plane.kubectl("get", "roles,clusterroles", "-A", "-o", "json", "-l",
                         "app.kubernetes.io/managed-by=kubegpu.nodes")  # fmt: skip
    return {right for item in json.loads(text)["items"] for right in expanded(item)}
