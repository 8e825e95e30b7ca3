"""The suite's command line: which systems, which servers, how much; and the summary at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.cases import Case, Check
from tests.support.known import Known, KnownError
from tests.support.levels import LEVELS
from tests.support.outcome import FAILED, Failure, Outcome
from tests.support.port.process import PortError
from tests.support.report import WRITERS, write_reports
from tests.support.session import SUTS, Choice, Session
from tests.support.summary import lines, table, verdict

SESSION = pytest.StashKey[Session]()
REPORTS = pytest.StashKey[Mapping[str, Path]]()  # option → file
SUITE = "tests/conformance/"
BROKEN_OFF = "the run did not come to its end"
ENDINGS: dict[int, str] = {
    pytest.ExitCode.INTERRUPTED: "interrupted",
    pytest.ExitCode.INTERNAL_ERROR: "the suite itself failed",
}
LOG_LINES = 10
OPERATIONS = {"dev": 1_000, "ci": 20_000, "nightly": 1_000_000}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the suite."""
    group = parser.getgroup("redisq", "redisq conformance")
    add = group.addoption
    add(
        "--sut", action="append", choices=(*SUTS, "model"), help="system under test; repeatable; default: all but model"
    )
    add("--redis-server", action="append", default=[], metavar="PATH-or-wheel", help="start this server; repeatable")
    add("--redis-url", action="append", default=[], metavar="URL", help="use this running server's empty database")
    add("--redis-image", action="append", default=[], metavar="IMAGE", help="start this container image; repeatable")
    add("--require-servers", default="", metavar="NAMES", help="fail unless these are tested: fakeredis,redis-7.0,…")
    add("--port", metavar="COMMAND", help="test a port through its adapter (spec/port-protocol.md), nothing else")
    add("--check-port", metavar="COMMAND", help="only hold the adapter's messages against the schema of the protocol")
    add("--level", choices=LEVELS, default="full", help="core: the original design as written; full: all corrections")
    add("--case", action="append", default=[], metavar="ID", help="only this case of the spec; repeatable")
    add("--clause", action="append", default=[], metavar="ID", help="only these clauses: CLAIM-7, CLAIM; repeatable")
    add("--known-failures", type=Path, metavar="FILE", help="cases that fail, each with its kind and reason (TOML)")
    add("--port-timeout", type=float, metavar="SECONDS", help="for each answer; default: 10, and 30 for hello")
    add("--report-json", type=Path, metavar="FILE", help="write all results (spec/schemas/report.json)")
    add("--report-html", type=Path, metavar="FILE", help="write all results as one page")
    add("--report-badge", type=Path, metavar="FILE", help="write a badge in the endpoint format of shields.io")
    add("--lua", type=Path, metavar="DIR", help="test the five script files of this folder")
    add(
        "--profile",
        choices=sorted(OPERATIONS),
        default="ci",
        help="dev: seconds; ci: the same every time; nightly: long, random",
    )
    add("--operations", type=int, metavar="N", help="operations that the machine compares on each server")
    add("--stats", action="store_true", help="print how often the machine reached each situation")
    add("--table", action="store_true", help="print a table of the servers in Markdown")
    add("--save-trace", type=Path, metavar="FILE", help="write the shrunk trace of a failure to this file")
    add("--replay", type=Path, metavar="FILE", help="replay only this trace")


def pytest_configure(config: pytest.Config) -> None:
    """Reads the options; says at once what is wrong with them."""
    option = config.getoption
    lua: Path | None = option("--lua")
    choice = Choice(
        suts=option("--sut") or SUTS,
        urls=option("--redis-url"),
        binaries=option("--redis-server"),
        images=option("--redis-image"),
        required=[name for name in option("--require-servers").split(",") if name],
        lua=lua.resolve() if lua else None,
        port=option("--port"),
        level=option("--level"),
        port_timeout_s=option("--port-timeout"),
    )
    if choice.port and (lua or option("--sut")):
        raise pytest.UsageError("--port tests a port alone: it goes with neither --lua nor --sut")
    known: Path | None = option("--known-failures")
    try:
        session = Session(choice, known=Known.read(known) if known else Known())
        session.known.narrowed = bool(option("--case") or option("--clause"))
    except KnownError as error:
        raise pytest.UsageError(f"--known-failures {error}") from None
    try:
        session.lua  # noqa: B018 - a folder with a script missing is an error of the command line
    except FileNotFoundError as error:
        raise pytest.UsageError(f"--lua {error}") from None
    config.stash[SESSION] = session
    # A path as the caller's folder has it. Written at once: a file that cannot be is an error of the command line, and
    # a run that is killed leaves no report of an earlier one.
    config.stash[REPORTS] = {name: path.absolute() for name in WRITERS if (path := option(name)) is not None}
    session.ended = BROKEN_OFF
    if unwritten := write_reports(session, 0, config.stash[REPORTS]):
        raise pytest.UsageError("; ".join(unwritten))
    session.ended = ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --replay, the replay and nothing else; with --case or --clause, those cases; else everything."""
    option = config.getoption
    if not any(item.name == "test_replay" for item in items):
        return  # not the suite
    cases, clauses = set(option("--case")), option("--clause")
    alone = "test_replay" if option("--replay") else "test_check_port" if option("--check-port") else None
    if alone:
        kept = [item for item in items if item.name == alone]
    elif cases or clauses:
        kept = [item for item in items if (case := _case_of(item)) and (case.id in cases or _in_any(case, clauses))]
    else:
        kept = [item for item in items if item.name not in ("test_replay", "test_check_port")]
    unknown = [*(cases - {c.id for c in map(_case_of, kept) if c}), *(n for n in clauses if not _names_any(n, kept))]
    if unknown:
        raise pytest.UsageError(f"no case of the spec is of {', '.join(sorted(unknown))}: see spec/README.md")
    if not option("--port"):
        kept = [item for item in kept if not item.name.startswith("test_check[")]  # of ports alone
    for item in kept:
        case = _case_of(item)
        item.user_properties += [("clause", clause) for clause in case.clauses] if case else []  # for JUnit
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def _case_of(item: pytest.Item) -> Case | Check | None:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("case") if callspec is not None else None


def _in_any(case: Case | Check, names: list[str]) -> bool:
    return any(clause == name or clause.split("-")[0] == name for clause in case.clauses for name in names)


def _names_any(name: str, items: list[pytest.Item]) -> bool:
    return any(_in_any(case, [name]) for case in map(_case_of, items) if case)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Writes the reports. The exit code is 0 only after a good verdict: never if nothing was compared, say."""
    run = session.config.stash[SESSION]
    run.ended = run.ended or str(session.shouldstop or session.shouldfail or ENDINGS.get(exitstatus, ""))
    run.unwritten = write_reports(run, session.testsfailed, session.config.stash[REPORTS])
    if exitstatus == pytest.ExitCode.OK and run.used and not verdict(run, session.testsfailed)[1]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_exception_interact(node: pytest.Item | pytest.Collector, report: pytest.TestReport) -> None:
    """A failure of the suite that no outcome tells is kept for the reports as it is."""
    run, text = node.config.stash[SESSION], report.longreprtext
    told = (outcome.failure.report.strip() for outcome in [*run.outcomes, *run.others] if outcome.failure)
    if node.nodeid.startswith(SUITE) and not any(part in text for part in told):
        run.others.append(Outcome(node.name, (), "", "the suite", FAILED, failure=Failure("check", report=text)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints what ran where, and the verdict."""
    run = config.stash[SESSION]
    if run.used:
        failed = len(terminalreporter.stats.get("failed", ())) + len(terminalreporter.stats.get("error", ()))
        for host in run.hosts if failed and not run.choice.port else ():
            if log := host.log_tail(LOG_LINES):
                terminalreporter.section(f"log of {host.name}, its last lines")
                terminalreporter.write_line(log)
        terminalreporter.section("redisq conformance")
        whole = run.ready and not config.getoption("--check-port")
        for line in lines(run, stats=config.getoption("--stats")) if whole else ():
            terminalreporter.write_line(line)
        for line in table(run) if config.getoption("--table") else ():
            terminalreporter.write_line(line)
        text, good = verdict(run, failed)
        terminalreporter.write_line(text, green=good, red=not good, bold=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stops what was started."""
    if SESSION in config.stash:
        config.stash[SESSION].close()


@pytest.fixture(scope="session")
def run(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Session:
    """The run: hosts, witnesses and results. A port whose adapter does not say hello ends it."""
    session = pytestconfig.stash[SESSION]
    try:
        session.groups  # noqa: B018 - starts what is tested
    except PortError as error:
        stderr = session.stderr_of_hello()
        session.ended = request.session.shouldstop = f"the port did not come so far: {error}"
        text = f"--port: {error}" + (f"\nits standard error:\n{stderr}" if stderr else "")
        failure = Failure(error.kind, report=text, stderr=stderr)
        session.others.append(Outcome("hello", (), "", "port", FAILED, failure=failure))
        pytest.fail(text, pytrace=False)
    return session
