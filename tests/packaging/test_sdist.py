"""The sdist stands alone: the tests pass in it, without a checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.packaging.environments import run

QUICK = [f"tests/unit/test_{name}.py" for name in ("api", "keys", "lua_header", "parity", "scripts_encoding")]
MORE = ["tests/unit", "tests/differential/test_cases_on_original.py"]


@pytest.fixture
def unpacked(sdist: Path, tmp_path: Path) -> Path:
    """The sdist, unpacked."""
    run(sys.executable, "-m", "tarfile", "-e", sdist, tmp_path, cwd=tmp_path)
    (folder,) = tmp_path.iterdir()
    return folder


def test_tests_pass_in_it(unpacked: Path, every: bool) -> None:
    """The tests pass on what the sdist holds: a few, or with --every-python those of the parts."""
    tests = MORE if every else QUICK
    run(sys.executable, "-m", "pytest", "-q", *tests, cwd=unpacked)


def test_suite_runs_in_it(unpacked: Path) -> None:
    """The suite runs in it, as in a checkout."""
    program = "import sys; from redisq.conformance import main; sys.exit(main(sys.argv[1:]))"
    done = run(sys.executable, "-c", program, "--profile", "dev", "--sut", "model", cwd=unpacked)
    assert "CONFORMS" in done.stdout
