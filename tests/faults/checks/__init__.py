"""The checks: functions of a rig, each the named test of a correction."""

from __future__ import annotations

from tests.faults.checks.full_server import check_e5
from tests.faults.checks.leases import check_e1, check_e2, check_e4, check_e10, check_e14
from tests.faults.checks.rights import check_e15
from tests.faults.checks.tiers import check_e6, check_e7, check_e8, check_e9, check_e11, check_e11_default, check_e16
from tests.faults.checks.windows import check_e3, check_e12, check_e13
from tests.faults.rig import Check

CHECKS: dict[str, Check] = {
    "E1": check_e1,
    "E2": check_e2,
    "E3": check_e3,
    "E4": check_e4,
    "E5": check_e5,
    "E6": check_e6,
    "E7": check_e7,
    "E9": check_e9,
    "E10": check_e10,
    "E11": check_e11,
    "E12": check_e12,
    "E13": check_e13,
    "E14": check_e14,
    "E15": check_e15,
    "E16": check_e16,
}
"""The check of each correction of the scripts; E8 is the client's."""

__all__ = ["CHECKS", "check_e8", "check_e11_default"]
