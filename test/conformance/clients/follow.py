"""Runs the Python client for the conformance suite. Arguments: URL AFTER UNTIL."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "clients" / "python"))

from prediction_forum import Forum  # noqa: E402

base_url, after, until = sys.argv[1:]
with Forum(base_url) as forum:
    for event in forum.follow(["all"], after=int(after)):
        print(event["offset"], event["id"])
        if event["offset"] >= int(until):
            break
