# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``make mutate``: how many small defects of the pure code do the unit tests see?

A defect (``mutate_mutants``) is planted in a copy of the checkout, the unit tests of its file run
(``mutate_areas``), and it is caught if one of them fails. A run takes a sample of each area, by a
seed that it prints. It is a runner of our own, for neither of the kept ones fits:

- mutmut 3 names a function by its path and finds it again by its module's ``__name__``; ours are
  ``ansible_collections.kubegpu.nodes...``, made in memory from the checkout (tests/conftest.py).
- cosmic-ray 8 runs with that, but removes no statement, which is what defects here look like (a
  check that is gone, a roll-back that is not called); of the 563 mutants that it makes of two files
  here, 187 are one operator put for another and 99 of those lie in annotations, which nobody
  evaluates. And it starts pytest anew for each mutant, 1.5 CPU seconds, where a fork
  (``mutate_worker``) has imported it already.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import itertools
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.tools import environments
from tests.tools.mutate_areas import AREAS, source, unit_tests
from tests.tools.mutate_mutants import Mutant, is_another_program, mutants

# Of 80 mutants, each took 1.8 CPU seconds with its tests.
SAMPLE = 100
WORKERS = 2
FOLDER = environments.REPOSITORY / "build" / "mutate"
CAUGHT = ("failed", "time limit")


@dataclass(frozen=True)
class Work:
    """A mutant of a file in an area."""

    area: str
    path: str
    mutant: Mutant


@dataclass
class Results:
    """What became of the mutants; threads add to it."""

    survived: list[Work] = field(default_factory=list)
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    cpu: float = 0.0

    def of(self, area: str) -> tuple[int, int]:
        """Return how many mutants of an area ran, and how many were caught."""
        counts = [(end, number) for (one, end), number in self.ends.items() if one == area]
        return sum(number for _end, number in counts), sum(
            number for end, number in counts if end in CAUGHT
        )


class WorkerError(Exception):
    """Tests could not be run, or fail without any defect."""


class Worker:
    """A process with a copy of the checkout of its own."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.root = environments.copy_checkout(folder)
        temporary = folder / "tmp"
        temporary.mkdir()
        compiled = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "plugins"]
        subprocess.run([str(python), *compiled], cwd=self.root, check=True)
        self._process = subprocess.Popen(
            [str(python), "-m", "tests.tools.mutate_worker"],
            cwd=self.root, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={
                **os.environ,
                "KUBEGPU_PROPERTY_SEED": "1",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "TMPDIR": str(temporary),
            },
        )  # fmt: skip
        self._options = ["-p", "_hypothesis_pytestplugin", "--hypothesis-seed=1"]
        self._options += ["--basetemp", str(temporary / "pytest")]

    def run(self, files: Sequence[str], seconds: float, **options: Any) -> dict[str, Any]:
        """Run tests; ``path`` and ``text`` are a file and its text for this run."""
        # Time limits have to bear a machine with other work; an endless loop takes CPU time.
        limits = {"cpu": int(seconds * 4) + 20, "seconds": seconds * 40 + 300}
        job = {"tests": list(files), "options": self._options, **limits, **options}
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"the process in {self.root} ended")
        outcome: dict[str, Any] = json.loads(line)
        if outcome["end"].startswith("error"):
            raise WorkerError(f"{outcome['end']} of {' '.join(files)}:\n{outcome['output']}")
        return outcome

    def close(self) -> None:
        """End the process, and what it runs."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()


def chosen(areas: Sequence[str], number: int | None, seed: int, only: str = "") -> list[Work]:
    """Return a sample of each area's mutants, all of them without a number."""
    works = []
    for area in areas:
        found = []
        texts = {}
        for name in AREAS[area]:
            path = source(name)
            texts[path] = (environments.REPOSITORY / path).read_text(encoding="utf-8")
            for mutant in mutants(texts[path]):
                if re.search(only, f"{path}:{mutant.line}:"):
                    found.append(Work(area, path, mutant))
        # A seed for each area: one area alone has the same sample as all of them.
        random.Random(f"{seed} {area}").shuffle(found)
        real = (work for work in found if is_another_program(texts[work.path], work.mutant))
        sample = itertools.islice(real, number)
        works += sorted(sample, key=lambda work: (work.path, work.mutant.start))
    return works


def diff(work: Work) -> str:
    """Return what a mutant changes, as a patch."""
    before = (environments.REPOSITORY / work.path).read_text(encoding="utf-8")
    old, new = (text.splitlines(keepends=True) for text in (before, work.mutant.apply(before)))
    return "".join(difflib.unified_diff(old, new, f"a/{work.path}", f"b/{work.path}", n=2))


def table(areas: Sequence[str], results: Results) -> str:
    """Return the result by area."""
    lines = [f"{'area':<14}{'mutants':>8}{'caught':>8}{'survived':>10}{'share':>8}"]
    sums = [0, 0]
    for area in [*areas, "all"]:
        ran, caught = results.of(area) if area != "all" else (sums[0], sums[1])
        sums = [sums[0] + ran, sums[1] + caught]
        share = f"{100 * caught / ran:.0f} %" if ran else "-"
        lines.append(f"{area:<14}{ran:>8}{caught:>8}{ran - caught:>10}{share:>8}")
    return "\n".join(lines)


def _all_in_threads(workers: Sequence[Worker], jobs: Sequence[Any], do: Any) -> None:
    """Let each worker take one job after another; the first failure ends all of it."""
    todo: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for job in jobs:
        todo.put(job)
    failures: list[BaseException] = []

    def take(worker: Worker) -> None:
        while not failures:
            try:
                job = todo.get_nowait()
            except queue.Empty:
                return
            try:
                do(worker, job)
            except Exception as failure:
                failures.append(failure)

    threads = [threading.Thread(target=take, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _measured(workers: Sequence[Worker], works: Sequence[Work]) -> dict[str, float]:
    """Return the CPU seconds of each test file that is needed; each has to pass."""
    sources = {work.path for work in works}
    needed = {
        path
        for files in AREAS.values()
        for name, words in files.items()
        if source(name) in sources
        for path in unit_tests(words)
    }
    seconds: dict[str, float] = {}

    def run(worker: Worker, path: str) -> None:
        outcome = worker.run([path], 60)
        if outcome["end"] != "passed":
            raise WorkerError(f"{path} fails without any defect:\n{outcome['output']}")
        seconds[path] = outcome["cpu"]

    _all_in_threads(workers, sorted(needed), run)
    return seconds


def _judge(
    workers: Sequence[Worker], works: Sequence[Work], seconds: dict[str, float], results: Results
) -> None:
    lock = threading.Lock()
    orders = {
        (area, source(name)): sorted(unit_tests(words), key=lambda path: seconds.get(path, 0))
        for area, files in AREAS.items()
        for name, words in files.items()
    }

    def run(worker: Worker, work: Work) -> None:
        files = orders[work.area, work.path]
        text = (worker.root / work.path).read_text(encoding="utf-8")
        changed = {"path": work.path, "text": work.mutant.apply(text)}
        outcome = worker.run(files, sum(seconds[path] for path in files), **changed)
        with lock:
            results.ends[work.area, outcome["end"]] += 1
            results.cpu += outcome["cpu"]
            if outcome["end"] not in CAUGHT:
                results.survived.append(work)
                print(f"survived: {work.path}:{work.mutant.line}: {work.mutant.what}", flush=True)

    # Areas take turns: a run that is stopped has done as much of each.
    places = Counter[str]()
    turns = []
    for work in works:
        places[work.area] += 1
        turns.append((places[work.area], work))
    _all_in_threads(workers, [work for _turn, work in sorted(turns, key=lambda one: one[0])], run)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make mutate", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--area", default="", help=f"one or several of {', '.join(AREAS)}")
    parser.add_argument("--number", default=str(SAMPLE), help="of mutants in each area, or 'all'")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument(
        "--only", default="", help="only where this regular expression fits path:line:"
    )
    options = parser.parse_args(argv)
    options.areas = re.split(r"[ ,]+", options.area.strip()) if options.area.strip() else [*AREAS]
    unknown = [area for area in options.areas if area not in AREAS]
    if unknown:
        parser.error(f"no such area: {', '.join(unknown)}; there are {', '.join(AREAS)}")
    if options.number != "all" and not options.number.isdigit():
        parser.error("--number is a number or 'all'")
    return options


def main(argv: Sequence[str] = ()) -> int:
    """Plant, run, and tell; the report lies in build/mutate."""
    options = _arguments(argv)
    # So that what is made for the run goes with it.
    signal.signal(signal.SIGTERM, lambda *_arguments: sys.exit(143))
    begin = time.monotonic()
    number = None if options.number == "all" else int(options.number)
    works = chosen(options.areas, number, options.seed, options.only)
    print(f"{len(works)} mutants; --seed {options.seed} repeats this sample", flush=True)
    python = environments.environment("test") / "python"
    results = Results()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="copies-", dir=FOLDER) as folder:
        workers = [Worker(python, Path(folder, str(place))) for place in range(WORKERS)]
        try:
            seconds = _measured(workers, works)
            _judge(workers, works, seconds, results)
        except (KeyboardInterrupt, SystemExit):
            print("make mutate: stopped; this is what was done until then", file=sys.stderr)
        except WorkerError as failure:
            print(f"make mutate: {failure}", file=sys.stderr)
            return 1
        finally:
            for worker in workers:
                worker.close()
    result = table(options.areas, results)
    ends = Counter[str]()
    for (_area, end), count in results.ends.items():
        ends[end] += count
    lines = [
        result,
        f"\n{time.monotonic() - begin:.0f} s, {results.cpu:.0f} CPU s of mutants; "
        f"{ends['time limit']} caught by the time limit; --seed {options.seed}\n",
        *(
            f"{work.path}:{work.mutant.line}: {work.area}: {work.mutant.what}\n{diff(work)}"
            for work in sorted(results.survived, key=lambda one: (one.path, one.mutant.start))
        ),
    ]
    report = FOLDER / "report.txt"
    report.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines[:2]) + f"Survivors with their patches: {report}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
