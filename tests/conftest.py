"""The options, fixtures and summary that all tests share."""

from tests.support.options import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_exception_interact,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_unconfigure,
    run,
)

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_exception_interact",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_unconfigure",
    "run",
]
