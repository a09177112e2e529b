import json
from pathlib import Path
from tests.integration.cluster import rights
from tests.integration.cluster.test_rights import *
from tests.unit.fixtures.rights import documents, expanded
from ansible_collections.kubegpu.nodes.plugins.modules import node_pause
PLANK = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.import_tasks: {folder}/plan_kubernetes.yml
"""
OUT = "/work/h/tmp-rights/parts.txt"
def test_parts(plane, play, pods, token):
    def show(what, call):
        n = len(plane.audit_log.read_text().splitlines())
        try:
            call()
        except BaseException as e:
            with open(OUT, "a") as f: f.write(f"{what}: FAILED {e!r}"[:3000]+"\n")
        whole = plane.audit_log.read_text().splitlines()
        class P:
            audit_log = Path("/work/h/tmp-rights/tail.log")
        P.audit_log.write_text("\n".join(whole[n:]))
        used = rights.asked(P)
        parts = {}
        for one in documents():
            for r in expanded(one):
                m = [u for u in used if allows(r, u)]
                if m: parts.setdefault(one["metadata"]["labels"]["kubegpu.nodes/rights"], set()).add((r.resource, r.verb))
        with open(OUT, "a") as f: f.write(f"{what}: {parts}\n")
    show("plan", lambda: play(PLANK, gpu_monitoring_enabled=True))
    for tag in ("labels", "device_plugin", "monitoring"):
        show("site " + tag, lambda: run2(play, SITE, tag))
    show("verify", lambda: verify(pods, token))
    show("maintain", lambda: maintain(pods, token))
    show("teardown", lambda: play(TEARDOWN))
def run2(play, text, tag):
    play(text, "--tags", tag, gpu_monitoring_enabled=True)
def test_zmissing(plane, play, pods, token):
    import time
    rights.delete(plane, "nodes")
    time.sleep(10)
    try:
        play(SITE, "--tags", "labels")
    except AssertionError as e:
        Path("/work/h/tmp-rights/missing.txt").write_text(str(e))
    rights.apply(plane)
    rights.delete(plane, "monitoring")
    time.sleep(10)
    try:
        play(SITE, "--tags", "monitoring", gpu_monitoring_enabled=True)
    except AssertionError as e:
        Path("/work/h/tmp-rights/missing2.txt").write_text(str(e))
    rights.apply(plane)
    rights.delete(plane, "pods")
    time.sleep(10)
    nodes = {BOTH: {"resources": {GPU: 1}}}
    tried = run_module(gpu_test_pods.main, {"kubeconfig": token, "nodes": nodes, "timeout": 1})
    Path("/work/h/tmp-rights/missing3.txt").write_text(json.dumps(tried, indent=1))
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": {"name": "kubegpu-ansible", "namespace": "kubegpu", "annotations": {"kubernetes.io/service-account.name": "kubegpu-ansible"}}}
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(secret))
    time.sleep(3)
    out = plane.kubectl("-n", "kubegpu", "get", "secret", "kubegpu-ansible", "-o", "jsonpath={.data.token}")
    import base64
    tok = base64.b64decode(out).decode()
    look = run_module(gpu_cluster_info.main, {"host": plane.server, "ca_cert": str(plane.ca_file), "api_key": tok})
    Path("/work/h/tmp-rights/secret.txt").write_text(json.dumps(look)[:400])
    bad = run_module(gpu_cluster_info.main, {"host": plane.server, "ca_cert": str(plane.ca_file), "api_key": "eyJhbGciOi.x.y"})
    Path("/work/h/tmp-rights/bad.txt").write_text(json.dumps(bad)[:1000])
