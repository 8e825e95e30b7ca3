"""What a user gets: the package installed where nothing else is, used from a folder that has nothing to do with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.packaging.environments import ROOT, Environment, said

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
USE = """
import sys
import redisq
from redisq import AsyncRedisTransport, RedisTransport
foreign = {name.split(".")[0] for name in sys.modules} & {"redis", "fakeredis", "pytest", "model", "tests"}
print(redisq.__version__, sorted(foreign))
try:
    RedisTransport.from_url("redis://localhost")
except ImportError as error:
    print(error)
"""


def test_library_without_extras(bare: Environment) -> None:
    """The package imports with nothing beside it; what needs a client says how to get one."""
    lines = bare.run("python", "-W", "error", "-c", USE).stdout.splitlines()
    assert lines == [
        f"{VERSION} []",
        "from_url needs redis-py: pip install 'redisq-transport[redis]'",
    ]


def test_suite_without_extra(bare: Environment) -> None:
    """Without the extra the command says what to install, and does not pass."""
    done = bare.run("redisq-conformance", check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.endswith("not installed: pip install 'redisq-transport[conformance]'\n")
    assert "pytest" in done.stderr


def test_suite_installed(equipped: Environment) -> None:
    """The suite runs from the wheel, in any folder, conforms, and leaves nothing behind."""
    before = equipped.files()
    done = equipped.run("redisq-conformance", "--profile", "dev", "--operations", "300", "--sut", "fakeredis")
    assert "CONFORMS on fakeredis alone" in done.stdout, said(done)
    assert re.search(r"compared +fakeredis +[\d,]{3,} operations", done.stdout), said(done)
    assert {name for name in equipped.files() - before if "redisq" in name} == set()
    assert list(equipped.elsewhere.iterdir()) == []


def test_suite_installed_rejects(equipped: Environment, tmp_path: Path) -> None:
    """The installed suite rejects scripts with one word changed, and says so by its exit code."""
    for script in ROOT.glob("redisq/lua/*.lua"):
        (tmp_path / script.name).write_text(script.read_text().replace("'RPUSH'", "'LPUSH'"))
    done = equipped.run(
        "redisq-conformance", "--profile", "dev", "--sut", "fakeredis", "--lua", tmp_path, "-x", check=False
    )
    assert done.returncode == 1, said(done)
    assert "DOES NOT CONFORM" in done.stdout


def test_suite_holds_the_scripts_that_are_installed(equipped: Environment) -> None:
    """A script changed where it is installed does not conform: the suite has no copy of its own to look at."""
    where = "from importlib.resources import files; print(files('redisq') / 'lua' / 'publish.lua')"
    script = Path(equipped.run("python", "-c", where).stdout.strip())
    source = script.read_text()
    script.write_text(source.replace("'RPUSH'", "'LPUSH'"))
    try:
        done = equipped.run("redisq-conformance", "--profile", "dev", "--sut", "fakeredis", "-x", check=False)
    finally:
        script.write_text(source)
    assert done.returncode == 1, said(done)
    assert "DOES NOT CONFORM" in done.stdout


def test_replay_installed(equipped: Environment, tmp_path: Path) -> None:
    """A record is replayed by the installed command: a step that cannot be is found, and told by the exit code."""
    record = tmp_path / "record"
    publish = [b'"ZADD" "q:ready:0" "0" "g"', b'"HSET" "q:prio" "g" "0"', b'"RPUSH" "q:q:g" "m"']
    record.write_bytes(b"".join(b"1.000000 [0 c:1] %s\n" % command for command in publish))
    done = equipped.run("redisq-conformance", "replay", "--from", record, "--prefix", "q")
    assert "POSSIBLE: every step" in done.stdout, said(done)
    with record.open("ab") as lines:
        lines.write(b'2.000000 [0 c:2] "LPOP" "q:q:g"\n')
    done = equipped.run("redisq-conformance", "replay", "--from", record, "--prefix", "q", check=False)
    assert done.returncode == 1, said(done)
    assert "POP q:g: its head was removed without a lease" in done.stdout


def test_readme_example(equipped: Environment) -> None:
    """The first example of the README runs as it stands, and prints something."""
    example = re.search(r"^```python\n(.+?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert example is not None
    assert equipped.run("python", "-W", "error", "-c", example[1]).stdout
