#!/usr/bin/python
# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_objects
short_description: Apply or remove objects of a cluster by kubernetes.core.k8s (internal)
version_added: 0.1.0
description:
  - Runs M(kubernetes.core.k8s) with the options of the task. If the API server refuses, the message
    has cause, evidence and next step instead of its answer; if a right is missing, it names all
    rights that the run lacks.
author:
  - kubegpu.nodes contributors (@kubegpu)
extends_documentation_fragment:
  - kubegpu.nodes.kube
options:
  definition:
    description: An object, or a list of objects.
    type: raw
    required: true
  state:
    description: Whether the objects are applied or removed.
    type: str
    choices: [present, absent]
    default: present
  apply:
    description: Whether the fields of the objects are applied, not merged.
    type: bool
    default: false
  server_side_apply:
    description: Field manager, and whether conflicts are forced.
    type: dict
  hidden_fields:
    description: Fields that are left out of the result and the difference.
    type: list
    elements: str
  delete_options:
    description: How objects are removed.
    type: dict
  wait:
    description: Whether to wait until the objects are gone.
    type: bool
    default: false
  wait_timeout:
    description: For how many seconds.
    type: int
    default: 120
attributes:
  check_mode:
    description: That of M(kubernetes.core.k8s).
    support: full
  diff_mode:
    description: That of M(kubernetes.core.k8s).
    support: full
  idempotent:
    description: That of M(kubernetes.core.k8s).
    support: full
seealso:
  - module: kubernetes.core.k8s
"""

EXAMPLES = r"""
- name: Apply a service
  kubegpu.nodes.cluster_objects:
    kubeconfig: /home/ops/.kube/config
    state: present
    apply: true
    definition:
      apiVersion: v1
      kind: Service
      metadata: {name: exporter, namespace: kubegpu}
      spec: {selector: {app: exporter}, ports: [{port: 9400}]}
"""

RETURN = r"""
result:
  description: That of M(kubernetes.core.k8s).
  returned: success
  type: dict
kinds:
  description: The kinds of the objects that changed, or that would change in check mode.
  returned: success
  type: list
  elements: str
  sample: [DaemonSet]
reason:
  description: The word of the API server for a refusal.
  returned: if the API server refuses
  type: str
cause:
  description: What is wrong.
  returned: if the API server refuses
  type: str
evidence:
  description: What shows it.
  returned: if the API server refuses
  type: str
next_step:
  description: What you can do.
  returned: if the API server refuses
  type: str
"""
