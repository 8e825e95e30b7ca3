"""The ports to other languages, built here and held by the suite as their authors would."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cases import CHECKS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LAUNCHER = "from redisq.conformance import main; raise SystemExit(main())"


def built(folder: Path, *commands: str) -> None:
    """Builds a port. Without its language it is skipped, unless REDISQ_REQUIRE_PORTS is set."""
    missing = [line.split()[0] for line in commands if shutil.which(line.split()[0]) is None]
    if missing and not os.environ.get("REDISQ_REQUIRE_PORTS"):
        pytest.skip(f"not installed: {', '.join(missing)}")
    assert not missing, f"required, and not installed: {', '.join(missing)}"
    for line in commands:
        done = subprocess.run(line.split(), cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def conforms(pytestconfig: pytest.Config, command: str, level: str) -> str:
    """What the suite prints about a port; it must conform."""
    servers = [w for server in pytestconfig.getoption("--redis-server") for w in ("--redis-server", server)]
    words = [sys.executable, "-c", LAUNCHER, "--port", command, "--level", level, *servers]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    print(done.stdout)
    return done.stdout


@pytest.mark.parametrize(
    ("folder", "build", "command"),
    [
        ("node", ("npm ci --no-audit --no-fund", "npm run build"), "node tests/ports/node/dist/adapter.js"),
        ("c", ("make",), "tests/ports/c/adapter"),
    ],
)
def test_conforms_in_full(pytestconfig: pytest.Config, folder: str, build: tuple[str, ...], command: str) -> None:
    """Every case, every check and thousands of random operations, on each server."""
    built(HERE / folder, *build)
    printed = conforms(pytestconfig, command, "full")
    assert re.search(r"CONFORMS \(full\) on [\w., -]+: \d+ passed; [\d,]{5,} operations compared", printed), printed
    assert "not asked" not in printed


def test_oracle_conforms(pytestconfig: pytest.Config) -> None:
    """The model is an adapter, too; what needs a server is not asked of it, and that is said."""
    printed = conforms(pytestconfig, f"{sys.executable} -m model", "full")
    assert "on its own keys alone" in printed
    assert f"{len(CHECKS)} not asked" in printed


def test_adapters_are_small() -> None:
    """An adapter is an afternoon's work: at most 150 lines."""
    for name in ("python.py", "node/src/adapter.ts", "c/adapter.c"):
        assert len((HERE / name).read_text(encoding="utf-8").splitlines()) <= 150, name


def test_lock_file_names_no_host() -> None:
    """Packages come from wherever npm is told to look."""
    assert "resolved" not in (HERE / "node/package-lock.json").read_text(encoding="utf-8")


def test_the_gate_asks_node_for_its_version() -> None:
    """Its question is answered by an exit code; as it once was, Node refused to end with a truth value."""
    version = shutil.which("node") and subprocess.run(["node", "-v"], capture_output=True, text=True).stdout
    if not version or int(version.strip("v").split(".")[0]) < 20:
        pytest.skip("Node.js 20 or newer is not installed")
    (question,) = re.findall(r"command node -e '([^']+)'", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    too_old, once = question.replace("< 20", "< 9999"), question.replace(" ? 1 : 0", "")
    assert question not in (too_old, once)
    codes = [subprocess.run(["node", "-e", text], capture_output=True).returncode for text in (question, too_old, once)]
    assert codes == [0, 1, 1]
