"""``python -m tests.mutants [SCRIPT …]``: kills every mutant of the scripts, and says which live.

Each that nothing kills must be listed in ``equivalent.toml`` with its reason, and agree with the model wherever it was
tried (``evidence.py``). ``--record`` writes what came of it to ``result.json``; ``--gate`` holds that file against the
scripts as they are, hunts the mutants of those that changed since, and a sample of the others. Exit code 0: all well.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from tests.mutants.equivalent import Equivalents
from tests.mutants.generate import Mutant, mutants
from tests.mutants.hunt import hunt
from tests.mutants.kill import compiles
from tests.mutants.result import FILE, Result, digests
from tests.support.cases import CASES
from tests.support.designs import NAMES, package_scripts
from tests.support.servers import discover

SAMPLE = 60  # mutants of scripts that did not change, in the gate


def main(argv: Sequence[str] | None = None) -> int:
    """Hunts, prints killed and total for each script and each survivor with its change; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--redis-server", default="", help="path, command or wheel; default: the first found")
    parser.add_argument("--gate", action="store_true", help="only what changed since the record, and a sample")
    parser.add_argument("--verbose", action="store_true", help="a line for each mutant as it is done")
    parser.add_argument("--record", action="store_true", help=f"write {FILE.name}; takes all scripts")
    options = parser.parse_args(argv)
    if unknown := set(options.scripts) - set(NAMES):
        parser.error(f"no such script: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if options.record and (options.scripts or options.gate):
        parser.error("--record is of all mutants of all scripts")
    began = time.monotonic()
    due = all_mutants(options.scripts or NAMES)
    equivalents = Equivalents.read()
    wrong = equivalents.wrong(due)
    if options.gate:
        recorded, sources = Result.read(), package_scripts()
        wrong += recorded.wrong(due, sources, equivalents)
        due = recorded.due(due, sources, random.Random(0), SAMPLE)
    by, evidence = hunt(due, options.redis_server or str(discover()[0].path), tell(len(due), options.verbose))
    wrong += equivalents.refuted(by)
    lives = [mutant for mutant in due if not by[mutant.id] and mutant.id not in equivalents.reasons]
    for name in sorted({mutant.script for mutant in due}, key=NAMES.index):
        print(line_of(name, due, by, equivalents))
    print("killed by: " + ", ".join(f"{n} {stage}" for stage, n in stages(by).most_common()))
    for mutant in lives:
        before, after = mutant.diff
        print(f"LIVES  {mutant.id}  {mutant.script}.lua:{mutant.line}  {mutant.what}\n  - {before}\n  + {after}")
    for sentence in wrong:
        print(f"WRONG  {sentence}")
    killed = sum(map(bool, by.values()))
    told = f"{killed} of {len(due)} mutants killed, {len(due) - killed - len(lives)} equivalent, {len(lives)} live"
    print(f"{told}; {time.monotonic() - began:.0f} s")
    result = Result(digests(package_scripts()), by, evidence)
    if options.record:
        result.write()
    if not options.scripts:
        spare = (Result.read() if options.gate else result).spare(case.id for case in CASES)
        print(f"{len(spare)} of {len(CASES)} cases are needed by no mutant: {', '.join(spare)}")
    return 0 if not lives and not wrong else 1


def tell(size: int, verbose: bool) -> Callable[[Mutant, str], None]:
    """Tells what came of each mutant: a line each, or a count on a terminal."""
    done = itertools.count(1)

    def told(mutant: Mutant, killer: str) -> None:
        if verbose:
            print(f"{mutant.id}  {mutant.script}.lua:{mutant.line}  {mutant.what}: {killer}", flush=True)
        elif sys.stderr.isatty():
            print(f"\r{next(done)} of {size} ", end="", file=sys.stderr, flush=True)

    return told


def all_mutants(scripts: Sequence[str]) -> list[Mutant]:
    """Those of these scripts that are Lua."""
    sources = package_scripts()
    return [m for name in scripts for m in mutants(name, sources[f"{name}.lua"]) if compiles(m.source)]


def line_of(name: str, due: Sequence[Mutant], by: dict[str, str], equivalents: Equivalents) -> str:
    """The count of one script."""
    of_script = [mutant for mutant in due if mutant.script == name]
    killed = sum(bool(by[mutant.id]) for mutant in of_script)
    listed = sum(mutant.id in equivalents.reasons for mutant in of_script)
    return f"{name:<8} {killed:>4} of {len(of_script):>4} killed, {listed:>3} equivalent"


def stages(by: dict[str, str]) -> Counter[str]:
    """How many each stage killed."""
    return Counter(killer.split(":")[0] for killer in by.values() if killer)


if __name__ == "__main__":
    sys.exit(main())
