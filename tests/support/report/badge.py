"""The badge, in the endpoint format of shields.io."""

from __future__ import annotations

from model.operation import Json


def badge(report: Json) -> Json:
    """What the badge shows: the level and the share of cases that pass, in green only if the run was good."""
    counts = report["counts"]
    asked = counts["passed"] + counts["failed"] + counts["known failure"]
    level = report["level"]
    message = f"{level}: {counts['passed']} of {asked} cases" if asked else "nothing ran"
    if report["ended"]:
        message = "ended early"
    elif not report["conforms"] and not counts["failed"] and asked:  # something else failed
        message = f"{level}: does not conform"
    color = "red" if not (report["conforms"] and asked) else "yellow" if counts["known failure"] else "brightgreen"
    return {"schemaVersion": 1, "label": "redisq", "message": message, "color": color}
