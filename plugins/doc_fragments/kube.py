# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connection options of the modules that speak to a Kubernetes API server."""

from __future__ import annotations


class ModuleDocFragment:
    """Extended as C(kubegpu.nodes.kube). Names and variables are those of kubernetes.core."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - A kubeconfig file on the host that runs the module, or several joined by colons.
      - Without O(kubeconfig), O(context) and O(host) the service account of the pod is used in
        which the module runs, else the file that the variable E(KUBECONFIG) names, else
        C(~/.kube/config).
      - Can also be given by the variable E(K8S_AUTH_KUBECONFIG).
    type: path
  context:
    description:
      - A context of the kubeconfig; without it the file's current one.
      - Can also be given by the variable E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description:
      - Address of the API server, as V(https://10.0.0.1:6443). With a kubeconfig, it takes the
        place of the address there.
      - Can also be given by the variable E(K8S_AUTH_HOST).
    type: str
  api_key:
    description:
      - Token for the API server.
      - Can also be given by the variable E(K8S_AUTH_API_KEY).
    type: str
  username:
    description:
      - User name, for a proxy in front of the API server that wants one. Kubernetes itself has no
        passwords.
      - Can also be given by the variable E(K8S_AUTH_USERNAME).
    type: str
  password:
    description:
      - Password of O(username).
      - Can also be given by the variable E(K8S_AUTH_PASSWORD).
    type: str
  ca_cert:
    description:
      - File with the CA that signed the API server's certificate.
      - Can also be given by the variables E(K8S_AUTH_CA_CERT) and E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  client_cert:
    description:
      - File with a client certificate.
      - Can also be given by the variables E(K8S_AUTH_CLIENT_CERT) and E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description:
      - File with the key of O(client_cert).
      - Can also be given by the variables E(K8S_AUTH_CLIENT_KEY) and E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  proxy:
    description:
      - Address of an HTTP proxy on the way to the API server.
      - Can also be given by the variable E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description:
      - Hosts, separated by commas, that are reached without O(proxy).
      - Can also be given by the variable E(K8S_AUTH_NO_PROXY).
    type: str
requirements:
  - The Python library C(kubernetes), 31.0 or later, where the module runs.
notes:
  - The module runs on the host that can reach the API server, usually with
    C(delegate_to=localhost), C(become=false), C(run_once=true) and the controller's own
    interpreter.
  - Certificates are always verified. A kubeconfig with C(insecure-skip-tls-verify) is refused
    unless O(ca_cert) is given, since an attacker on the network could read the credentials. So the
    options C(validate_certs) and C(verify_ssl) of the modules of kubernetes.core do not exist.
"""
