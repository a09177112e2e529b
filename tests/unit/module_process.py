# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a module's ``main()`` in this process, as Ansible would: arguments in, its JSON out."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import tempfile

from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._forms import tasks_fault


def run_module(main, arguments, *, check=False, diff=True):
    """Return what the module printed; ``failed`` tells.

    :param arguments: also the internal ones of its action, by name.
    """
    output = io.StringIO()
    # Those of modules that this process ran before.
    warnings._global_warnings.clear()
    warnings._global_deprecations.clear()
    # A module makes its temporary folder itself, and removes it when its process ends: not here.
    with tempfile.TemporaryDirectory(prefix="kubegpu-module-") as folder:
        ansible = {name: one for name, one in arguments.items() if name.startswith("_ansible_")}
        internal = {
            name: one
            for name, one in arguments.items()
            if name.startswith("_") and name not in ansible
        }
        sent = {**internal.pop("_internal", {}), **internal}
        given = {
            **{name: arguments[name] for name in arguments if not name.startswith("_")},
            **({"_internal": sent} if sent else {}),
            **ansible,
            "_ansible_check_mode": check,
            "_ansible_diff": diff,
            "_ansible_tmpdir": folder,
        }
        with (
            patch_module_args(given),
            contextlib.redirect_stdout(output),
            contextlib.suppress(SystemExit),
            _same_signal_handlers(),
        ):
            main()
    answer = json.loads(output.getvalue())
    if "_tasks" in answer:
        # The action refuses another form: the form accepts whatever the module really returns.
        assert tasks_fault(main.__module__.rpartition(".")[2], answer["_tasks"]) == ""
    return answer


@contextlib.contextmanager
def _same_signal_handlers():
    """A module that cleans up after a signal leaves its handlers: its process would end here."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # Another thread than the main one can set none, and a module there set none.
            with contextlib.suppress(ValueError):
                signal.signal(number, handler)


def predicted(main, arguments, **options):
    """Return the answer of a real run, having seen that check mode says the same before it."""
    before = run_module(main, arguments, check=True, **options)
    after = run_module(main, arguments, **options)
    assert before.get("changed") == after.get("changed")
    assert before.get("diff") == after.get("diff")
    return after
