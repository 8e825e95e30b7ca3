"""What was verified, and how much: ``python -m tests.support.verified [PART …]``.

Runs the parts (``explore``, ``large``, ``refine``, ``suite``, ``soak``, ``power``; none: no new run), keeps what they
counted in ``spec/verified.json`` with the date, the versions and a digest of the code, and writes the table of
README.md from it. A test fails once that code is another.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from model.explore import Exploration
from model.scope import SCOPES
from tests.exploration.refine import run as execute
from tests.exploration.transitions import collect
from tests.faults.load.account import told
from tests.faults.load.power import measure
from tests.faults.load.soak import soak
from tests.mutants.result import Result, digests
from tests.support.cases import CASES, CHECKS, CLAUSES
from tests.support.servers import discover

ROOT = Path(__file__).parents[2]
FILE = ROOT / "spec" / "verified.json"
README = ROOT / "README.md"
BEGIN, END = "<!-- verified: tox run -e verified -->\n", "<!-- /verified -->\n"

SOAK_SECONDS, LOSSES = 300.0, 5
SCRIPTS, MODEL = "redisq/lua/*.lua", "model/*.py"
LOAD = "tests/faults/load/[!t]*.py"  # but for its tests
NOT_OF_THE_QUEUE = {"audit.py", "cli.py"}  # they look after a queue, and no part runs them
DESCRIBES: Mapping[str, tuple[str, ...]] = {
    "explore": (MODEL,),
    "large": (MODEL,),
    "refine": (SCRIPTS, MODEL, "tests/exploration/refine.py", "tests/exploration/transitions.py"),
    "suite": (SCRIPTS, "redisq/*.py", MODEL, "tests/differential/machine.py"),
    "soak": (SCRIPTS, "redisq/*.py", LOAD),
    "power": (SCRIPTS, "redisq/*.py", LOAD),
}


def digest(part: str, root: Path = ROOT) -> str:
    """Of all files that a part describes."""
    files = sorted(
        path for pattern in DESCRIBES[part] for path in root.glob(pattern) if path.name not in NOT_OF_THE_QUEUE
    )
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


def explore(scope: str) -> dict[str, Any]:
    """Every situation of a scope."""
    exploration = Exploration(SCOPES[scope])
    exploration.run()
    return {"scope": str(SCOPES[scope]), "states": exploration.states, "transitions": exploration.transitions}


def refine() -> dict[str, Any]:
    """Every transition of the default scope, on fakeredis and on the first server found. Raises SystemExit."""
    transitions = collect(SCOPES["default"])
    agreed, wrong = execute(transitions, ["fakeredis", str(discover()[0].path)])
    if wrong:
        raise SystemExit(str(wrong[0]))
    return {"found": len(transitions.found), "all": transitions.all, "hosts": dict(agreed)}


def suite() -> dict[str, Any]:
    """The suite on fakeredis and every server found. Raises SystemExit."""
    servers = [word for source in discover() for word in ("--redis-server", str(source.path))]
    launcher = "from redisq.conformance import main; raise SystemExit(main())"
    done = subprocess.run(
        [sys.executable, "-c", launcher, *servers], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stdout[-4_000:] + done.stderr[-1_000:])
    hosts = dict(re.findall(r"^server +(\S+) +(\S+)", done.stdout, re.M))
    compared = sum(int(count.replace(",", "")) for count in re.findall(r"^compared +\S+ +([\d,]+)", done.stdout, re.M))
    return {"operations": compared, "hosts": hosts}


def soaked() -> dict[str, Any]:
    """A soak on the first server found. Raises SystemExit."""
    found, account = soak(str(discover()[0].path), SOAK_SECONDS, seed="1")
    if account.wrong:
        raise SystemExit(told(account.wrong))
    return found


def power() -> dict[str, Any]:
    """Losses of power of the first server found."""
    with discover()[0].start() as server:
        return {"host": f"{server.name} {server.version}", "losses": LOSSES, "took": measure(server, LOSSES)}


PARTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "explore": lambda: explore("default"),
    "large": lambda: explore("large"),
    "refine": refine,
    "suite": suite,
    "soak": soaked,
    "power": power,
}


def record(part: str) -> dict[str, Any]:
    """Runs a part: its counts, when, of which code and with which versions."""
    versions = {
        "Python": platform.python_version(),
        **{name: version(name) for name in ("redis", "fakeredis", "hypothesis")},
    }
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": date, "versions": versions, "digest": digest(part), **PARTS[part]()}


def read() -> dict[str, Any]:
    """What is recorded."""
    recorded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return recorded


def stale(verified: Mapping[str, Any], result: Result, root: Path = ROOT) -> list[str]:
    """The commands that count anew what describes other code than there is, or was never counted."""
    parts = [part for part in DESCRIBES if verified.get(part, {}).get("digest") != digest(part, root)]
    sources = {path.name: path.read_text(encoding="utf-8") for path in root.glob(SCRIPTS)}
    mutants = [] if result.scripts == digests(sources) else ["tox run -e mutants -- --record"]
    return [*(f"tox run -e verified -- {part}" for part in parts), *mutants]


def rows(verified: Mapping[str, Any], result: Result) -> Iterator[tuple[str, str, str]]:
    """What, how many, and how to see it oneself."""
    explored, large, refined, tested = (verified[part] for part in ("explore", "large", "refine", "suite"))
    lived = sum(not killer for killer in result.killed_by.values())
    hosts = ", ".join(sorted(refined["hosts"]))
    servers = ", ".join(f"{name} {number}" for name, number in sorted(tested["hosts"].items()))
    yield "clauses, each with a case, a check or a test", f"{len(CLAUSES):,}", "`spec/clauses.md`"
    yield "cases and checks", f"{len(CASES):,} and {len(CHECKS)}", "`redisq-conformance`"
    yield (
        "operations compared, each reply and every key",
        f"{tested['operations']:,}, on {servers}",
        "`redisq-conformance`",
    )
    yield "situations explored, and transitions between them", sizes(explored), "`tox run -e explore`"
    yield "the same in a larger scope", sizes(large), "`tox run -e explore -- --scope large`"
    yield (
        "different transitions executed on the Lua, all agree",
        f"{refined['found']:,}, on {hosts}",
        "`tox run -e refine`",
    )
    killed = f"{len(result.killed_by) - lived:,} of {len(result.killed_by):,}; the other {lived} change nothing"
    yield "mutants of the Lua killed", killed, "`tox run -e mutants`"
    yield from of_faults(verified["soak"], verified["power"])


def of_faults(soaked: Mapping[str, Any], power: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The same of the faults."""
    again = ", ".join(f"{cause}: {count:,}" for cause, count in soaked["duplicates"].items())
    took = "; ".join(
        f"{policy}: {messages:,}" + (f", of the last {longest_ms:,} ms" if messages else "")
        for policy, (messages, longest_ms) in power["took"].items()
    )
    injected = f"{soaked['injected']:,}, and {soaked['calls']:,}, on {soaked['host']}"
    yield "faults injected under load, and operations meanwhile", injected, "`tox run -e soak`"
    kept = f"{soaked['published']:,}, {soaked['wrong']['lost']:,} and {sum(soaked['duplicates'].values()):,}"
    yield "messages published, lost, and delivered again", f"{kept} ({again})", "`tox run -e soak`"
    yield (
        f"messages that a loss of power took, most of {power['losses']}, by `appendfsync`",
        f"{took}; on {power['host']}",
        "`tox run -e verified -- power`",
    )


def sizes(explored: Mapping[str, Any]) -> str:
    """How large an exploration was."""
    return f"{explored['states']:,} and {explored['transitions']:,}"


def table(verified: Mapping[str, Any], result: Result) -> str:
    """The table of README.md."""
    lines = ["| verified | how much | see for yourself |", "| --- | --- | --- |"]
    lines += [f"| {' | '.join(row)} |" for row in rows(verified, result)]
    runs = sorted(
        {
            f"{run['date']} ({', '.join(' '.join(item) for item in sorted(run['versions'].items()))})"
            for run in verified.values()
        }
    )
    return "\n".join([*lines, "", f"Counted on {'; '.join(runs)}.", ""])


def in_readme(readme: str, text: str) -> str:
    """README.md with the table in its place."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{text}{END}{after}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs parts, and writes the file and the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.verified", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}, or all")
    parts = parser.parse_args(argv).parts
    if unknown := set(parts) - {*PARTS, "all"}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}, and all")
    verified = read()
    for part in PARTS if "all" in parts else parts:
        counted = record(part)
        verified = {**read(), part: counted}  # another part may have been recorded meanwhile
        FILE.write_text(json.dumps(verified, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{part}: {verified[part]}", flush=True)
    if verified.keys() == DESCRIBES.keys():
        text = table(verified, Result.read())
        README.write_text(in_readme(README.read_text(encoding="utf-8"), text), encoding="utf-8")
    old = stale(verified, Result.read())
    for command in old:
        print(f"the code is another since: {command}")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
