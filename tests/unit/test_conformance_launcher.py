"""The launcher of the suite: where it finds the suite, what it hands to pytest, what its exit code says."""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import redisq
from redisq import conformance
from redisq.conformance import main

ROOT = Path(__file__).parents[2]
CLAIM = '1000 publish group="a" payload="x"\n1000 claim token="A"\n'
Runs = Callable[..., list[list[str]]]


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the launcher changes in its process is put back."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    for variable in (
        "HYPOTHESIS_STORAGE_DIRECTORY",
        "PYTEST_ADDOPTS",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
        "PYTEST_PLUGINS",
    ):
        monkeypatch.setenv(variable, "as it was")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Has pytest answer with a code, and notes what it is called with."""

    def answer(code: int, look: Callable[[list[str]], Any] = lambda args: None) -> list[list[str]]:
        calls: list[list[str]] = []

        def run(args: list[str]) -> int:
            calls.append(args)
            look(args)
            return code

        monkeypatch.setattr(pytest, "main", run)
        return calls

    return answer


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (pytest.ExitCode.OK, 0),
        (pytest.ExitCode.TESTS_FAILED, 1),
        (pytest.ExitCode.INTERRUPTED, 1),
        (pytest.ExitCode.INTERNAL_ERROR, 1),
        (pytest.ExitCode.USAGE_ERROR, 2),
        (pytest.ExitCode.NO_TESTS_COLLECTED, 1),
    ],
)
def test_exit_code(runs: Runs, code: pytest.ExitCode, expected: int) -> None:
    """0 if it conforms, 2 if the command line is wrong, and 1 in every other case: also if nothing ran."""
    runs(code)
    assert main([]) == expected


def test_arguments_reach_pytest(runs: Runs) -> None:
    """The caller's arguments come after our own and unchanged; the suite is the checkout's, by its own settings."""
    calls = runs(0)
    assert main(["--sut", "fakeredis", "--lua", "some/folder", "-x"]) == 0
    (args,) = calls
    assert args[-6:] == ["--sut", "fakeredis", "--lua", "some/folder", "-x", str(ROOT / "tests" / "conformance")]
    assert args[:2] == [f"--config-file={ROOT / 'pyproject.toml'}", f"--rootdir={ROOT}"]
    assert "--noconftest" in args
    assert sys.path[0] == str(ROOT)


def test_arguments_of_the_process(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without arguments given they are those of the command line."""
    calls = runs(0)
    monkeypatch.setattr(sys, "argv", ["redisq-conformance", "--profile", "dev"])
    assert main() == 0
    assert calls[0][-3:-1] == ["--profile", "dev"]


def test_environment_of_the_run(runs: Runs) -> None:
    """Settings of pytest from the environment are dropped, and what hypothesis keeps goes into a temporary folder."""
    seen: dict[str, str] = {}
    runs(0, lambda _: seen.update(os.environ))
    assert main([]) == 0
    assert not {"PYTEST_ADDOPTS", "PYTEST_PLUGINS"} & seen.keys()
    assert seen["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] == "1"
    assert seen["HYPOTHESIS_STORAGE_DIRECTORY"] != "as it was"
    assert not Path(seen["HYPOTHESIS_STORAGE_DIRECTORY"]).exists()
    assert sys.dont_write_bytecode


def test_installed_suite_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package that carries the suite runs that one, whatever folders lie beside it."""
    monkeypatch.setattr(conformance, "PACKAGE", tmp_path / "redisq")
    assert conformance.suite() == tmp_path
    (tmp_path / "redisq" / "_suite").mkdir(parents=True)
    assert conformance.suite() == tmp_path / "redisq" / "_suite"


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_trace_from_standard_input(runs: Runs, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A trace on standard input is read before pytest takes that away, and is given to it as a file."""
    read: list[str] = []
    runs(0, lambda args: read.append(Path(args[-2].removeprefix("--replay=")).read_text()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CLAIM.encode())))
    assert main(["--replay", name]) == 0
    assert read == [CLAIM]


def test_trace_from_a_file(runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace in a file is left to pytest; one that is not there is named, and nothing runs."""
    calls = runs(0)
    assert main(["--replay", str(tmp_path / "trace")]) == 2
    assert capsys.readouterr().err == f"redisq-conformance: --replay {tmp_path / 'trace'}: no such file\n"
    assert calls == []
    (tmp_path / "trace").write_text(CLAIM)
    assert main(["--replay", str(tmp_path / "trace")]) == 0
    assert calls[0][-3:-1] == ["--replay", str(tmp_path / "trace")]


def test_missing_packages_are_named(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the extra the command says what is missing and how to get it, and does not conform."""
    runs(0)
    monkeypatch.setattr(conformance, "NEEDED", ("no_such_package", "pytest", "nor_this"))
    assert main([]) == 2
    said = "no_such_package, nor_this not installed: pip install 'redisq-transport[conformance]'"
    assert capsys.readouterr().err == f"redisq-conformance: {said}\n"


def test_help_is_of_the_suite(capsys: pytest.CaptureFixture[str]) -> None:
    """--help shows what a port's author needs: the suite's own options, none of pytest's."""
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    for option in ("--sut", "--lua DIR", "--redis-server PATH-or-wheel", "--require-servers", "--replay FILE"):
        assert option in text
    assert "--pdb" not in text


def test_value_that_an_option_does_not_take(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong value ends the run before it begins, and names what is allowed."""
    calls = runs(0)
    with pytest.raises(SystemExit) as end:
        main(["--sut", "nonesuch"])
    assert end.value.code == 2
    assert "nonesuch" in (said := capsys.readouterr().err)
    assert "fakeredis" in said
    assert calls == []


def launch(folder: Path, *args: str, trace: str = CLAIM) -> subprocess.CompletedProcess[str]:
    """Runs the command in a folder, in a process of its own."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from redisq.conformance import main; sys.exit(main())"
    line = [sys.executable, "-c", program, *args]
    env = {**os.environ, "PYTEST_ADDOPTS": "--nonsense", "PYTEST_PLUGINS": "nonsense"}
    return subprocess.run(line, cwd=folder, input=trace, capture_output=True, text=True, env=env, check=False)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a pytest configuration, a conftest and packages of its own that break whatever takes them up."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --nonsense\n")
    for name in ("conftest.py", "model.py", "tests.py"):
        (tmp_path / name).write_text("raise RuntimeError('of the caller')\n")
    return tmp_path


def test_run_in_a_hostile_folder(hostile: Path) -> None:
    """The suite runs in any folder, however that is set up for pytest, and leaves nothing there."""
    before = sorted(hostile.rglob("*"))
    run = launch(hostile, "--sut", "fakeredis", "--replay", "-")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "CONFORMS on fakeredis alone" in run.stdout
    assert sorted(hostile.rglob("*")) == before


def test_broken_scripts_do_not_conform(hostile: Path) -> None:
    """Scripts given by a path relative to the caller are taken from there, and do not conform if they are wrong."""
    (hostile / "lua").mkdir()
    for script in Path(redisq.__file__).parent.glob("lua/*.lua"):
        source = script.read_text().replace("'RPUSH'", "'LPUSH'")
        (hostile / "lua" / script.name).write_text(source)
    (hostile / "lua" / "conftest.py").write_text("raise RuntimeError('of the caller')\n")
    two = CLAIM.replace("1000 claim", '1000 publish group="a" payload="y"\n1000 claim')
    run = launch(hostile, "--sut", "fakeredis", "--lua", "lua", "--replay", "/dev/stdin", trace=two)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "DOES NOT CONFORM" in run.stdout
    assert "of the caller" not in run.stdout + run.stderr


def test_option_that_does_not_exist(hostile: Path) -> None:
    """An option that neither the suite nor pytest knows is an error of the command line."""
    assert launch(hostile, "--no-such-option").returncode == 2


def test_a_port_of_which_nothing_was_asked_does_not_conform(tmp_path: Path) -> None:
    """Where every case chosen is one that the port cannot be asked, the run is no success."""
    oracle = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from model.__main__ import main; main()"
    port = shlex.join([sys.executable, "-c", oracle])
    run = launch(tmp_path, "--port", port, "--case", "CLAIM-7c")
    assert run.returncode == 1, run.stdout + run.stderr
    assert "NOTHING RAN" in run.stdout
    assert launch(tmp_path, "--port", port, "--case", "CLAIM-7a").returncode == 0


def test_a_required_server_counts_where_no_operation_is_compared() -> None:
    """Also tests that only use the servers fail if one that is required is missing."""
    line = [sys.executable, "-m", "pytest", "-q", "tests/faults/test_errata.py", "-k", "test_e9"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    line += ["--require-servers", "redis-0.1"]
    run = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "INCOMPLETE: required and not found: redis-0.1" in run.stdout


def test_a_termination_ends_the_run_as_an_interrupt(runs: Runs) -> None:
    """While the suite runs, and not after it: what was there before is put back."""
    handlers: list[Any] = []
    before = signal.getsignal(signal.SIGTERM)
    runs(0, lambda args: handlers.append(signal.getsignal(signal.SIGTERM)))
    assert main([]) == 0
    assert handlers == [signal.default_int_handler]
    assert signal.getsignal(signal.SIGTERM) == before


def test_in_a_thread_signals_are_left_alone(runs: Runs) -> None:
    """A caller that runs the suite in a thread of its own keeps its signals, and gets the exit code."""
    runs(0)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(main, []).result() == 0
