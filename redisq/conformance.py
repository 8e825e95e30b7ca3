"""The command ``redisq-conformance``: runs the suite against any system under test.

A launcher, no more: the suite is ``tests/conformance``, which lies beside the package in a checkout and inside it, in
``_suite``, when installed. It is put on the path of this process only.
"""

from __future__ import annotations

import os
import signal
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import current_thread, main_thread
from types import SimpleNamespace

PACKAGE = Path(__file__).parent
NEEDED = ("fakeredis", "hypothesis", "jsonschema", "lupa", "pytest", "redis", "time_machine")
REPLAY_NEEDED = ("redis",)
STDIN = ("-", "/dev/stdin")
CONFORMS, DOES_NOT, USAGE = 0, 1, 2
ABOUT = """\
Holds any system under test against the model: every reply, and every key after every step.

  redisq-conformance                          the package, on every server found on PATH or in an installed wheel
  redisq-conformance --sut redis --lua DIR    other script files, on those servers
  redisq-conformance --port COMMAND           a port in any language, through its adapter (spec/port-protocol.md)
  redisq-conformance --replay FILE            one saved trace; - reads it from standard input
  redisq-conformance replay URL --prefix P    what a running server does, as it does it (spec/replay.md)
"""
AFTER = "Options of pytest may follow, such as -x. Exit code: 0 conforms, 1 does not, 2 the command line is wrong."


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the suite with these arguments (default: those of the process) and returns the exit code.

    0: it conforms. 1: it does not, or the run was broken off. 2: the command line is wrong, or packages are missing.
    Raises ``SystemExit`` (0 or 2) after ``--help`` and for a value that an option does not take, as ``argparse`` does.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    replaying = args[:1] == ["replay"]
    missing = [name for name in (REPLAY_NEEDED if replaying else NEEDED) if find_spec(name) is None]
    if missing:
        return _refuse(f"{', '.join(missing)} not installed: pip install 'redisq-transport[conformance]'")
    root = suite()
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True  # nothing of a run is left in the package's folder,
    if replaying:
        replay: Callable[[Sequence[str]], int] = import_module("tests.support.replay.cli").main
        return replay(args[1:])
    with TemporaryDirectory(prefix="redisq-conformance-") as scratch:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch  # nor in the caller's
        trace: Path | None = _parser().parse_known_args(args)[0].replay
        if trace is not None and str(trace) in STDIN:  # which pytest hides from the tests
            trace = Path(scratch, "trace")
            trace.write_bytes(sys.stdin.buffer.read())
            args.append(f"--replay={trace}")
        elif trace is not None and not trace.is_file():
            return _refuse(f"--replay {trace}: no such file")
        return _run(root, args)


def suite() -> Path:
    """The folder that holds ``model``, ``spec`` and ``tests``."""
    installed = PACKAGE / "_suite"
    return installed if installed.is_dir() else PACKAGE.parent


def _run(root: Path, args: Sequence[str]) -> int:
    """Runs pytest on the suite, deaf to the configuration, conftest files and plugins of wherever it is called."""
    import pytest

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for variable in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(variable, None)
    where = [f"--config-file={root / 'pyproject.toml'}", f"--rootdir={root}", "--noconftest", "-p", "tests.conftest"]
    # A warning of a newer client or server package is no difference from the model.
    how = ["--quiet", "--no-header", "--tb=short", "-rN", "--disable-warnings", "-W", "default"]
    with _terminable():
        code = pytest.main([*where, *how, *args, str(root / "tests" / "conformance")])
    return {pytest.ExitCode.OK: CONFORMS, pytest.ExitCode.USAGE_ERROR: USAGE}.get(pytest.ExitCode(code), DOES_NOT)


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM as Ctrl-C: what was found so far is still reported. Only the main thread may decide so."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> ArgumentParser:
    """The options of the suite, by its own definitions."""
    parser = ArgumentParser(
        prog="redisq-conformance",
        usage="%(prog)s [options]",
        description=ABOUT,
        epilog=AFTER,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    options = import_module("tests.support.options")
    options.pytest_addoption(SimpleNamespace(getgroup=lambda *_: SimpleNamespace(addoption=parser.add_argument)))
    return parser


def _refuse(message: str) -> int:
    print(f"redisq-conformance: {message}", file=sys.stderr)
    return USAGE
