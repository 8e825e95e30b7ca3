"""The checks of the spec, by id: what no trace can show, done to a port by the runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.port.checks.full_server import check_full_server
from tests.support.port.checks.interleaved import check_interleaved
from tests.support.port.checks.rights import check_rights
from tests.support.port.checks.together import check_together
from tests.support.port.witness import Port

CHECKS: Mapping[str, Callable[[Port], None]] = {
    "E1-2": check_interleaved,
    "E5-1": check_full_server,
    "E15-2": check_rights,
    "CLAIM-7c": check_together,
}
