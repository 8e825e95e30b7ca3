"""The command ``redisq-conformance replay``."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from model.notation import quoted
from redisq.keys import encode
from redisq.scripts import load
from tests.support.replay.attach import Attached, as_lines
from tests.support.replay.monitor import Entry, MonitorError, entries, line
from tests.support.replay.replay import Finding, Replay

POSSIBLE, NOT, USAGE = 0, 1, 2
IDLE_SECONDS = 0.3
ABOUT = """\
Watches a running Redis or Valkey by MONITOR, follows the keys of one queue, and holds every step against the model:
whatever client or language took it. It changes nothing on the server. It ends at the first step that cannot be, with
the steps that led there.

  redisq-conformance replay redis://localhost --prefix orders --seconds 60
  redisq-conformance replay redis://localhost --prefix orders --record file
  redisq-conformance replay --from file --prefix orders
"""
COST = """\
While it watches, the server formats each command for one more client: a saturated Valkey lost a third of its
throughput by that, a saturated Redis three quarters (measured by tests.concurrency.cost; see spec/replay.md). The user
needs +monitor, +echo, +scan, +zscan, +hscan, +multi, +exec, +hget, +get, +type, +pttl, +llen, +zscore and the
keys of the queue. Exit code: 0 every step was possible, 1 one was not or that cannot be told, 2 the command line is
wrong."""


def main(argv: Sequence[str]) -> int:
    """Runs it. 0: every step that was seen is possible. 1: one is not, or that cannot be told. 2: used wrongly."""
    options = _parser().parse_args(argv)
    if (options.url is None) == (options.source is None):
        return _refuse("either a URL or --from FILE")
    if not options.prefix:
        return _refuse("--prefix: not empty")
    try:
        scripts = load(files("redisq") / "lua")
        known = {script.sha: name for name, script in scripts.items()}
        if options.lua:
            known |= {script.sha: name for name, script in load(options.lua).items()}
        db = options.db
        if options.url:
            db = int(urlsplit(options.url).path.strip("/") or 0)
        replay = Replay(encode(options.prefix), known, db)
        with ExitStack() as stack:
            record = stack.enter_context(options.record.open("wb")) if options.record else None
            source = _from_file(options.source) if options.source else _live(options, replay, stack, record)
            return _report(replay, _watch(replay, source, record))
    except (OSError, ValueError) as error:
        return _refuse(str(error))
    except MonitorError as error:
        print(f"UNKNOWN: {error}", file=sys.stderr)
        return NOT


def _watch(replay: Replay, source: Iterator[Entry], record: BinaryIO | None) -> Finding | None:
    for entry in source:
        if record is not None:
            record.write(line(entry) + b"\n")
        if replay.add(entry) is not None:
            break
    return replay.finding or replay.end(cut=True)


def _from_file(path: str) -> Iterator[Entry]:
    with sys.stdin.buffer if path == "-" else Path(path).open("rb") as lines:
        yield from entries(lines)


def _live(options: argparse.Namespace, replay: Replay, stack: ExitStack, record: BinaryIO | None) -> Iterator[Entry]:
    """The lines as they come. Ends after the time given, or at ^C."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        stack.callback(signal.signal, number, signal.signal(number, lambda *_: stop.set()))
    server = stack.enter_context(Attached(options.url, replay.prefix))
    server.learn(replay)
    print(f"watching {len(replay.keys.groups):,} groups; end it with ^C", file=sys.stderr)
    if record is not None:
        record.writelines(each + b"\n" for each in as_lines(replay))
    end = time.monotonic() + options.seconds if options.seconds else None
    while not stop.is_set() and (end is None or time.monotonic() < end):
        if (entry := server.next(IDLE_SECONDS)) is not None:
            yield entry
        elif replay.waits:
            server.echo()  # the last step is whole when the next line comes
    yield from server.rest()


def _report(replay: Replay, finding: Finding | None) -> int:
    counts = replay.counts
    print(f"{'seen':<12}{counts.pop('lines', 0):,} lines, {replay.steps:,} steps on the queue")
    for what, count in sorted(counts.items()):
        print(f"{'not judged':<12}{count:,} {what}")
    if finding is not None:
        print(f"\n{finding}\n\nIMPOSSIBLE")
        return NOT
    if replay.not_judged:
        print(f"UNKNOWN: what happened to {len(replay.not_judged):,} groups cannot be told")
        return NOT
    if not replay.steps:
        print(f"UNKNOWN: nothing was done to a queue of the prefix {quoted(replay.prefix)} in database {replay.db}")
        return NOT
    print("POSSIBLE: every step is one that the model allows")
    return POSSIBLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="redisq-conformance replay",
        description=ABOUT,
        epilog=COST,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("url", nargs="?", metavar="URL", help="the server: redis://, rediss:// or unix://, with the database")
    add("--prefix", required=True, metavar="P", help="the prefix of the queue")
    add("--seconds", type=float, metavar="S", help="how long to watch; default: until ^C")
    add("--from", dest="source", metavar="FILE", help="replay this record instead; - reads standard input")
    add("--db", type=int, default=0, metavar="N", help="the database of a record; default: 0")
    add("--record", type=Path, metavar="FILE", help="write the key space and every line to this file")
    add("--lua", type=Path, metavar="DIR", help="five more scripts that are to do what the package's do")
    return parser


def _refuse(message: str) -> int:
    print(f"redisq-conformance replay: {message}", file=sys.stderr)
    return USAGE
