"""The command `redisq`: doctor and audit.

Exit codes: 0 nothing to do, 1 warnings, 2 errors that were found and not healed, 3 the command could not do its work.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

from redisq.errors import InvalidArgument
from redisq.ops.audit import audit
from redisq.ops.doctor import doctor
from redisq.ops.finding import Finding, Severity

FAILED = 3
COLOURS = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.ERROR: "red"}


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(FAILED, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line, and returns the exit code."""
    options = _parser().parse_args(argv)
    if find_spec("redis") is None:
        print("redisq: this needs redis-py: pip install 'redisq-transport[redis,cli]'", file=sys.stderr)
        return FAILED
    library = import_module("redis")
    failures = (library.RedisError, library.exceptions.RedisClusterException, OSError)
    try:
        kind = library.RedisCluster if options.cluster else library.Redis
        client = kind.from_url(options.url)
    except (ValueError, *failures) as error:
        print(f"redisq: {_shown(options.url)}: {error}", file=sys.stderr)
        return FAILED
    run: Callable[[Any, Namespace], int] = options.run
    try:
        return run(client, options)
    except InvalidArgument as error:
        print(f"redisq: {error}", file=sys.stderr)
    except failures as error:
        print(f"redisq: {_shown(options.url)}: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        client.close()
    return FAILED


def _parser() -> ArgumentParser:
    parser = _Parser(prog="redisq", description="Looks after queues of redisq in production.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    common = _Parser(add_help=False)
    common.add_argument("url", metavar="URL", help="redis://[user:password@]host[:port][/db], rediss://, unix://")
    common.add_argument("--cluster", action="store_true", help="the URL is of a node of a Redis Cluster")
    common.add_argument("--json", action="store_true", help="prints one JSON object")
    told = "can this server, user and client carry a queue, and what will surprise; writes nothing"
    sub = commands.add_parser("doctor", parents=[common], help=told, description=told)
    sub.add_argument("--prefix", metavar="P", help="of the queue; without it, what depends on it is left out")
    sub.set_defaults(run=_doctor)
    told = "is any group of a queue stuck, and why; safe on a live queue"
    sub = commands.add_parser("audit", parents=[common], help=told, description=told)
    sub.add_argument("--prefix", metavar="P", required=True, help="of the queue")
    sub.add_argument("--repair", action="store_true", help="heals what can be healed; without it nothing is written")
    sub.add_argument(
        "--tolerance",
        metavar="S",
        type=float,
        default=60.0,
        help="seconds by which a score may lie beyond the end of its lock (default: %(default)s)",
    )
    sub.set_defaults(run=_audit)
    return parser


def _doctor(client: Any, options: Namespace) -> int:
    findings = doctor(client, options.prefix)
    code = max(finding.severity for finding in findings)
    if options.json:
        _print_json({"command": "doctor", "prefix": options.prefix}, findings, code)
    else:
        _print(findings)
        print(f"doctor: {_count(findings)}")
    return code


def _audit(client: Any, options: Namespace) -> int:
    shown = sys.stderr.isatty() and not options.json
    report = audit(
        client,
        options.prefix,
        repair=options.repair,
        tolerance=options.tolerance,
        progress=_progress if shown else None,
    )
    if shown:
        print(file=sys.stderr)
    if options.json:
        counts = {"keys": report.keys, "groups": report.groups, "others": report.others}
        head = {"command": "audit", "prefix": report.prefix, "repair": report.repair, **counts}
        _print_json(head, report.findings, report.severity)
        return report.severity
    _print(report.findings)
    others = f"; {report.others:,} keys of queues whose prefix begins like this one" if report.others else ""
    print(f"audit: {report.keys:,} keys and entries read{others}; {_count(report.findings)}")
    if not report.repair and any(finding.severity for finding in report.findings):
        print("nothing was written; --repair heals what can be healed")
    return report.severity


def _progress(done: int, total: int) -> None:
    of = f" of about {max(done, total):,}" if total else ""
    print(f"\r{done:,}{of} keys and entries", end="", file=sys.stderr, flush=True)


def _count(findings: Iterable[Finding]) -> str:
    listed = list(findings)
    healed = sum(finding.healed for finding in listed)
    errors, warnings = (
        sum(finding.severity is severity and not finding.healed for finding in listed)
        for severity in (Severity.ERROR, Severity.WARNING)
    )
    return f"{errors} errors, {warnings} warnings" + (f", {healed} healed" if healed else "")


def _print_json(head: dict[str, Any], findings: Iterable[Finding], severity: Severity) -> None:
    told = [finding.to_json() for finding in findings]
    print(json.dumps({**head, "severity": severity.name.lower(), "findings": told}, indent=2))


def _print(findings: Iterable[Finding]) -> None:
    """A paragraph for each; in colours where rich is installed and this is a terminal."""
    console = None
    if find_spec("rich") is not None:
        console = import_module("rich.console").Console(highlight=False, emoji=False)
    for finding in findings:
        mark = "healed" if finding.healed else finding.severity.name.lower()
        subject = _printable(finding.subject)
        lines = [f"{finding.code}  {subject}: {_printable(finding.what)}"]
        lines += [f"         {text}" for text in (finding.why, finding.fix) if text]
        if console is None:
            print(f"{mark:8} " + "\n".join(lines))
        else:
            colour = "green" if finding.healed else COLOURS[finding.severity]
            console.print(f"{mark:8} ", style=colour, end="", markup=False)
            console.print("\n".join(lines), markup=False, soft_wrap=True)


def _shown(url: str) -> str:
    """The URL without user and password."""
    scheme, separator, rest = url.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _printable(text: str) -> str:
    """The text of a group or key, with what a terminal would act on escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
