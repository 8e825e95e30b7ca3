"""The checks of the spec, by id: what no trace can show, done to a port by the runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.port.checks.failing import (
    check_error_answers,
    check_late_replies,
    check_lost_calls,
    check_lost_replies,
)
from tests.support.port.checks.forgotten_scripts import check_forgotten_scripts
from tests.support.port.checks.full_server import check_full_server
from tests.support.port.checks.interleaved import check_claims, check_publishes, check_settlements
from tests.support.port.checks.rig import Rig
from tests.support.port.checks.rights import check_rights
from tests.support.port.checks.together import check_together

CHECKS: Mapping[str, Callable[[Rig], None]] = {
    "CLAIM-7c": check_together,
    "CLAIM-7d": check_claims,
    "E1-2": check_settlements,
    "E5-1": check_full_server,
    "E15-2": check_rights,
    "FAIL-8a": check_forgotten_scripts,
    "FAIL-9a": check_error_answers,
    "FAIL-10a": check_lost_calls,
    "FAIL-10b": check_lost_replies,
    "FAIL-10c": check_late_replies,
    "PUBLISH-1c": check_publishes,
}
IN_REAL_TIME = frozenset({"CLAIM-7c"})  # these need no clock that can be set
