# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write docs/reports.md, what people ran into: ``python -m tests.reports.page``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from tests.tools.environments import REPOSITORY
from tests.tools.reference import HEAD

# Makes the collection importable.
importlib.import_module("tests.conftest")
corpus = importlib.import_module("tests.reports.corpus")

PAGE = REPOSITORY / "docs" / "reports.md"
_TITLES = {
    "nvidia_kernel": "Kernel log: NVIDIA",
    "amd_kernel": "Kernel log: AMD",
    "intel_kernel": "Kernel log: Intel",
    "xids": "Xids",
    "builds": "Building and loading kernel modules",
    "packages": "Package managers",
    "containers": "Containers and runtimes",
    "kubernetes": "Kubernetes and schedulers",
    "tests_of_gpus": "Tests of GPUs",
}
_INTRODUCTION = """\
# What people ran into

What this collection says about {reports} texts that people pasted into public reports, about
{quiet} texts of nodes that work, in which it may find no error, and about {made} documents of
nvidia-smi, DCGM and nvbandwidth that were made with the values of a report. The tests explain each
of them again (`tests/reports`, with the texts). The cause is that of the first finding;
[all findings](findings.md) has the codes. A cause that nothing in the report proves begins with
"Possible cause".

Explain a text of your own:

```console
$ ansible-playbook kubegpu.nodes.diagnose -e gpu_diagnose_text_file=log.txt
```

With `--limit gpu1`, or `-e gpu_diagnose_text_host=gpu1`, the facts of that host are read, and
decide between several causes of one message. In your own playbooks the filter
`kubegpu.nodes.gpu_explain` returns the findings of a text. If it knows nothing of your text, or is
wrong: [how to report it](../CONTRIBUTING.md).
"""


def page() -> str:
    """Return the page."""
    cases = corpus.cases()
    parts = [HEAD.replace("tests.tools.reference", "tests.reports.page")]
    quiet = sum(not case.codes for case in cases if not case.made)
    made = sum(case.made for case in cases)
    parts.append(_INTRODUCTION.format(reports=len(cases) - quiet - made, quiet=quiet, made=made))
    for origin, title in _TITLES.items():
        own = [case for case in cases if case.name.startswith(f"{origin}/")]
        if own:
            parts.append(f"\n## {title}\n")
            parts += [_section(case, corpus.said_about(case)) for case in own]
    return "".join(parts)


def _section(case: Any, found: Sequence[Mapping[str, Any]]) -> str:
    source = f"[{case.source.partition('/')[2] or case.source}](https://{case.source})"
    said = " The document was made with the values of the report." if case.made else ""
    lines = [f"\n### {case.situation.rstrip('.')}\n", f"{source}, {case.date}.{said}\n"]
    first = next((one for one in found if one["code"] in case.codes[:1]), None)
    if first is None:
        lines.append("- No finding: this node works.")
    else:
        lines.append(
            f"- [`{first['code']}`](findings.md#{first['code']}): {_plain(first['cause'])}"
        )
        for title, key in (("Next step", "next_step"), ("Fix", "fix")):
            if first[key]:
                text = _plain(first[key])
                lines.append(f"- *{title}*: {f'`{text}`' if key == 'fix' else text}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return a text in one line, in which Markdown finds no markup."""
    return " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
