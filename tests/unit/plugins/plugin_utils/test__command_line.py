# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that can be pasted: as the run was called, and without secrets."""

from __future__ import annotations

import os

import pytest
from ansible import constants, context
from ansible.utils.context_objects import CLIArgs

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._command_line import (
    complete,
    copy_key,
    ping,
    run_arguments,
)

HERE = os.getcwd()
GIVEN = {
    "inventory": (f"{HERE}/inventories/site", "/etc/more", "gpu9,"),
    "remote_user": "ops",
    "private_key_file": "/home/me/key file",
    "connection": "ssh",
    "become": True,
    "become_method": "sudo",
    "become_user": None,
    "become_ask_pass": True,
    "ask_pass": False,
    "ask_vault_pass": True,
    "vault_password_files": (f"{HERE}/vault.txt",),
    "vault_ids": ("prod@prompt",),
    "extra_vars": ("gpu_password=secret", f"@{HERE}/gpus.yml", '{"a": "secret"}'),
}
WORDS = [
    "-i", "inventories/site", "-i", "/etc/more", "-i", "gpu9,", "-u", "ops",
    "--private-key", "/home/me/key file", "-b", "-K", "-J", "--vault-password-file", "vault.txt",
    "--vault-id", "prod@prompt", "-e", "@gpus.yml",
]  # fmt: skip


def test_the_arguments_are_those_of_the_run_without_what_may_be_a_secret():
    assert run_arguments(GIVEN) == WORDS


@pytest.mark.parametrize("given", [{}, {"inventory": tuple(constants.DEFAULT_HOST_LIST)}])
def test_what_ansible_cfg_says_is_not_repeated(given):
    assert run_arguments(given) == []


def test_every_command_of_a_text_is_completed():
    text = "nvidia_driver_branch, then: ansible-playbook kubegpu.nodes.site --limit gpu1 && x"
    words = ["-i", "my site", "-K", "-b"]
    assert complete({"fix": [text, 3, None]}, words) == {
        "fix": [
            "nvidia_driver_branch, then: ansible-playbook kubegpu.nodes.site -i 'my site' -K -b "
            "--limit gpu1 && x",
            3,
            None,
        ]
    }
    reboot = "kubectl drain n && ansible gpu1{} --become -m ansible.builtin.reboot"
    assert complete(reboot.format(""), words) == reboot.format(" -i 'my site' -K")
    # Words of a sentence, and a playbook of somebody else.
    for other in ("Run kubegpu.nodes.site", "ansible-playbook site.yml", "ansible gpu1 is a host"):
        assert complete(other, words) == other
    assert complete(text, []) == text


def test_the_command_that_tries_a_connection(monkeypatch):
    monkeypatch.setattr(context, "CLIARGS", CLIArgs({**GIVEN, "extra_vars": ()}))
    assert ping("gpu1").startswith("ansible gpu1 -i inventories/site ")
    assert ping("gpu1").endswith(" -b -m ansible.builtin.ping") and ping("gpu1").count(" -b") == 1


@pytest.mark.parametrize(
    ("variables", "command"),
    [
        ({}, "ssh-copy-id gpu1"),
        (
            {"ansible_user": "ada", "ansible_host": "192.0.2.10", "ansible_port": 2222},
            "ssh-copy-id -p 2222 ada@192.0.2.10",
        ),
        ({"ansible_host": "x; reboot"}, "ssh-copy-id 'x; reboot'"),
    ],
)
def test_the_command_that_copies_a_key(variables, command):
    assert copy_key("gpu1", variables) == command
