"""Splits long lists of ids in a query into several requests: long URLs fail on real networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Maximum URL length in bytes.
ADDRESS_MOST = 1200
# An answer contains everything that matches any value of such a list.
LISTS = ("ids", "question_ids", "topic")


def split_query(
    query: dict[str, Any], length_of: Callable[[dict[str, Any]], int]
) -> list[dict[str, Any]]:
    """Queries with short enough URLs, if possible."""
    lists = {name: list(query[name]) for name in LISTS if isinstance(query.get(name), (list, tuple))}
    name = max(lists, key=lambda one: len(lists[one]), default="")
    if not name or len(lists[name]) < 2 or length_of(query) < ADDRESS_MOST:
        return [query]
    half = (len(lists[name]) + 1) // 2
    parts = (lists[name][:half], lists[name][half:])
    return [one for part in parts for one in split_query({**query, name: part}, length_of)]


def join_pages(pages: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """The page of the log up to the offset that all of the pages reach."""
    until = min(page["next"] for page in pages)
    by_offset = {event["offset"]: event for page in pages for event in page["events"]}
    found = sorted(offset for offset in by_offset if offset <= until)
    following = found[limit - 1] if len(found) > limit else until
    head = min(page["head"] for page in pages)
    return {
        "events": [by_offset[offset] for offset in found[:limit]],
        "gap": next((page["gap"] for page in pages if page["gap"] is not None), None),
        "next": following,
        "next_cursor": str(following) if following < head else None,
        "head": head,
        "oldest": max(page["oldest"] for page in pages),
    }


def join_lists(pages: list[dict[str, Any]]) -> dict[str, Any]:
    """All rows of the parts, one part after another."""
    joined: dict[str, Any] = {**pages[0], "next_cursor": None}
    for page in pages[1:]:
        for name, value in page.items():
            if isinstance(value, (list, int)) and not isinstance(value, bool):
                joined[name] = joined[name] + value
    return joined
