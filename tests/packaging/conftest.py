"""The built wheel and sdist, and environments to install them into."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.packaging.environments import ROOT, Environment, every_python, run, this_python


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of these tests."""
    what = "install into an environment of each Python found, and run more tests from the sdist"
    parser.addoption("--every-python", action="store_true", help=what)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is installed is installed for one Python, or for each."""
    if "python" in metafunc.fixturenames:
        every = metafunc.config.getoption("--every-python", default=False)
        pythons = every_python() if every else {"{}.{}".format(*sys.version_info): this_python()}
        metafunc.parametrize("python", pythons.values(), ids=pythons.keys(), scope="session")


@pytest.fixture(scope="session")
def every(pytestconfig: pytest.Config) -> bool:
    """Whether as much is to be tested as the gate does."""
    return bool(pytestconfig.getoption("--every-python", default=False))


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of the project, and the wheel made from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    """The wheel."""
    (wheel,) = dist.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    """The sdist."""
    (sdist,) = dist.glob("*.tar.gz")
    return sdist


@pytest.fixture(scope="session")
def bare(python: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the package and nothing else."""
    environment = Environment(python, tmp_path_factory.mktemp("bare"))
    environment.install(wheel)
    return environment


@pytest.fixture(scope="session")
def equipped(python: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the package and its extra `conformance`."""
    environment = Environment(python, tmp_path_factory.mktemp("equipped"))
    environment.install(f"{wheel}[conformance]")
    return environment
