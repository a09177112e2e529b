# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials of a kubeconfig that are renewed, and the programs that give them.

The ``kubernetes`` client calls a hook of its configuration before each request. For a kubeconfig
the hook waits for its plugin (``exec``, ``auth-provider``) without end, and writes address, CA and
``verify_ssl`` of the kubeconfig into the configuration again (``KubeConfigLoader._set_config``).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .errors import KubeError

#: Seconds that a kubeconfig's plugin for credentials may take.
LIMIT = 60.0

Value = TypeVar("Value")


def in_time(function: Callable[[], Value], who: str) -> Value:
    """Return what ``function`` returns, where it may run a plugin for credentials.

    A plugin that wants a login or an answer never ends without a user in front of it. It is left
    running then.

    :param who: whose credentials they are, for the message.
    :raises KubeError: it has not ended within :data:`LIMIT` seconds.
    """
    done: queue.SimpleQueue[tuple[Value | None, Exception | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((function(), None))
        except Exception as error:  # raised again by who waits
            done.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        value, failure = done.get(timeout=LIMIT)
    except queue.Empty:
        raise KubeError(
            f"{who} got no credentials within {LIMIT:.0f} seconds",
            evidence="its plugin for credentials (exec or auth-provider in the kubeconfig) has not "
            "ended",
            next_step="Run kubectl as the user who runs the task, on the host that speaks "
            "to the API server: the plugin must need no answer and no browser.",
            reason="Configuration",
        ) from None
    if failure is not None:
        raise failure
    return cast("Value", value)


class Refresh:
    """The client's hook, within a time limit, after which the module's options count again.

    :param hook: the client's own.
    :param pin: puts the options over the configuration, and the verification of certificates on.
    :param who: whose credentials they are; empty where no plugin gives them.
    """

    def __init__(self, hook: Callable[[Any], None], pin: Callable[[Any], None], who: str) -> None:
        self._hook = hook
        self._pin = pin
        self._who = who

    def __call__(self, configuration: Any) -> None:
        if self._who:
            in_time(lambda: self._hook(configuration), self._who)
        else:
            self._hook(configuration)
        # The client's hook has put itself in this one's place.
        configuration.refresh_api_key_hook = self
        self._pin(configuration)
