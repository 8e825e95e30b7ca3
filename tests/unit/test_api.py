"""The package as it is imported: names, documentation, version, and no client library."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import redisq
from redisq import aio, arguments, batch, errors, keys, lease, scripts, transport

MODULES = (redisq, aio, arguments, batch, errors, keys, lease, scripts, transport)


def test_public_names() -> None:
    """The package offers these names, each from its module."""
    assert sorted(redisq.__all__) == [
        "AsyncRedisTransport",
        "InvalidArgument",
        "Lease",
        "RedisTransport",
        "RedisqError",
    ]
    assert all(inspect.isclass(getattr(redisq, name)) for name in redisq.__all__)


def test_version_is_that_of_the_project() -> None:
    """The package says the version of the project file."""
    file = Path(redisq.__file__).parents[1] / "pyproject.toml"
    if not file.exists():
        pytest.skip("the package is installed without its project file")
    assert redisq.__version__ == tomllib.loads(file.read_text(encoding="utf-8"))["project"]["version"]


def public(module: ModuleType) -> list[tuple[str, Any]]:
    """The public classes, functions and methods that a module defines."""
    found: list[tuple[str, Any]] = [(module.__name__, module)]
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(thing) or inspect.isclass(thing):
            found.append((f"{module.__name__}.{name}", thing))
        if inspect.isclass(thing):
            members = {key: value for key, value in vars(thing).items() if not key.startswith("_")}
            found += [
                (f"{module.__name__}.{name}.{key}", value)
                for key, value in members.items()
                if callable(value) or isinstance(value, property | classmethod)
            ]
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_all_that_is_public_is_documented(module: ModuleType) -> None:
    """Every public module, class, function, method and property has a docstring of its own."""
    things = public(module)
    assert len(things) > 1 or module is redisq
    assert [name for name, thing in things if not (thing.__doc__ or "").strip()] == []


def test_import_needs_no_client_library() -> None:
    """The package is imported and works on an injected client where neither redis nor valkey is installed."""
    program = """
import sys
for name in ("redis", "valkey", "fakeredis"):
    sys.modules[name] = None
import redisq

class Client:
    def execute_command(self, *args, **options):
        return 1
    def pipeline(self, transaction):
        raise NotImplementedError

assert redisq.RedisTransport(Client()).publish("g", "p") == 1
try:
    redisq.RedisTransport.from_url("redis://host")
except ImportError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=Path(redisq.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "from_url needs redis-py: pip install 'redisq-transport[redis]'\n"


def test_the_package_is_typed() -> None:
    """The marker for type checkers lies beside the modules."""
    assert (Path(redisq.__file__).parent / "py.typed").is_file()


def test_the_library_imports_nothing_of_the_project_around_it() -> None:
    """No module of the library imports model, spec, tests or bench."""
    for module in (aio, arguments, batch, errors, keys, lease, scripts, transport):
        source = inspect.getsource(module)
        for name in ("model", "spec", "tests", "bench"):
            assert f"import {name}" not in source
            assert f"from {name}" not in source
