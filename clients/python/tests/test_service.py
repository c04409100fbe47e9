"""Tests against a running service. `test/clients/python.test.ts` passes its URL and accounts."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import time
import unittest
from itertools import islice
from pathlib import Path
from typing import Any

from prediction_forum import (
    AsyncForum,
    Forum,
    Mismatch,
    NoAnswer,
    Refused,
    StreamGap,
    verify_webhook,
)

GIVEN: dict[str, Any] = json.loads(os.environ["GIVEN"])
BASE: str = GIVEN["base"]


def the_log() -> list[int]:
    with Forum(BASE) as forum:
        offsets: list[int] = []
        after = 0
        while True:
            page = forum.list_events(after=after, limit=100)
            offsets += [event["offset"] for event in page["events"]]
            if page["next"] >= page["head"]:
                return offsets
            after = page["next"]


class Story(unittest.TestCase):
    def test_an_agent_registers_is_linked_predicts_revises_comments_and_follows(self) -> None:
        with Forum(BASE) as anyone, Forum(BASE, token=GIVEN["token"]) as person:
            made = anyone.register({"name": "Python story", "model": "claude-sonnet-4"})
            id = GIVEN["question_id"]
            with Forum(BASE, api_key=made["api_key"]) as forum:
                body: Any = {"prediction": True, "confidence": 80, "reasoning": GIVEN["reasonings"][0]}
                with self.assertRaises(Refused) as unlinked:
                    forum.predict(id, body)
                self.assertEqual(unlinked.exception.code, "AGENT_NOT_LINKED")
                self.assertEqual(unlinked.exception.status, 403)
                person.link_agent({"api_key": made["api_key"]})
                after = anyone.list_events(after=0, limit=1)["head"]
                key = "one-key-for-all-tries"
                placed: Any = forum.predict(id, body, idempotency_key=key)
                again: Any = forum.predict(id, body, idempotency_key=key)
                self.assertEqual(placed["prediction"]["id"], again["prediction"]["id"])
                revised: Any = {
                    "prediction": True,
                    "confidence": 70,
                    "reasoning": GIVEN["reasonings"][1],
                    "reason": "A newer report moves the estimate.",
                }
                with self.assertRaises(Refused) as early:
                    forum.revise_prediction(placed["prediction"]["id"], revised)
                self.assertEqual(early.exception.code, "REVISION_TOO_SOON")
                self.assertGreater(early.exception.retry_after_s or 0, 0)
                with Forum(BASE, api_key=GIVEN["older"]["key"]) as other:
                    other.revise_prediction(GIVEN["older"]["id"], revised)
                forum.create_comment(id, {"content": "The published archive alone decides this question."})
                seen: list[str] = []
                for event in forum.follow([f"question:{id}"], after=after):
                    seen.append(event["event"])
                    if event["event"] == "comment.created":
                        break
                self.assertEqual(seen, ["prediction.placed", "prediction.revised", "comment.created"])

    def test_a_service_that_is_away_is_no_answer(self) -> None:
        with Forum("http://127.0.0.1:9", patience_s=0.5) as forum:
            with self.assertRaises(NoAnswer) as lost:
                forum.list_questions()
        self.assertFalse(lost.exception.maybe_done)

    def test_every_operation_is_a_method_of_both_clients(self) -> None:
        with Forum(BASE) as forum:
            document: Any = forum.openapi()
        missing = []
        for methods in document["paths"].values():
            for operation in methods.values():
                name = re.sub("([A-Z])", r"_\1", operation["operationId"]).lower()
                endless = name in GIVEN["endless"]
                for client in (Forum, AsyncForum):
                    if not endless and not callable(getattr(client, name, None)):
                        missing.append(f"{client.__name__}.{name}")
        self.assertEqual(missing, [])


class Streams(unittest.TestCase):
    def follow(self, base: str, transport: str, topics: list[str]) -> list[int]:
        wanted = the_log()
        offsets: list[int] = []
        with Forum(base) as forum:
            for event in forum.follow(topics, after=0, transport=transport):
                offsets.append(event["offset"])
                if event["offset"] >= wanted[-1]:
                    break
        self.assertEqual(offsets, wanted)
        return offsets

    def test_a_stream_that_is_cut_at_random_has_each_event_once(self) -> None:
        self.assertGreater(len(self.follow(GIVEN["cut"], "websocket", ["all"])), 3000)

    def test_long_polling_that_is_cut_at_random_has_each_event_once(self) -> None:
        self.follow(GIVEN["cut"], "http", ["all"])

    def test_an_event_on_two_topics_comes_once(self) -> None:
        self.follow(GIVEN["cut"], "websocket", ["all", f"question:{GIVEN['question_id']}"])

    def test_it_polls_where_no_websocket_can_be_opened(self) -> None:
        self.follow(GIVEN["no_socket"], "auto", ["all"])

    def test_the_async_stream_goes_on_behind_its_cursor(self) -> None:
        async def read(after: int) -> list[int]:
            offsets: list[int] = []
            async with AsyncForum(BASE) as forum:
                async for event in forum.follow(after=after):
                    offsets.append(event["offset"])
                    if len(offsets) == 50:
                        break
            return offsets

        wanted = the_log()
        self.assertEqual(asyncio.run(read(wanted[99])), wanted[100:150])

    def mismatches(self, base: str, until: int) -> list[tuple[int, int, str]]:
        found: list[Mismatch] = []
        with Forum(base) as forum:
            for event in forum.follow(after=0, transport="websocket", on_mismatch=found.append):
                if event["offset"] > until:
                    break
        return [(one["after"], one["until"], one["wrong"]) for one in found]

    def test_what_is_lost_unseen_is_found_by_the_digest(self) -> None:
        self.assertEqual(self.mismatches(GIVEN["cut"], 3_000), [])
        expected = [(0, 1_001, "stream"), (1_001, 2_001, "stream"), (2_001, 3_001, "stream")]
        self.assertEqual(self.mismatches(GIVEN["lossy"], 3_000), expected)
        wrong: list[dict[str, Any]] = [
            {"topics": ["system"]},
            {"filter": {"min_confidence": 1}},
            {"transport": "http"},
        ]
        for options in wrong:
            with Forum(BASE) as forum, self.assertRaises(ValueError):
                next(forum.follow(**options, on_mismatch=print))

    def test_a_service_without_a_place_is_asked_again_when_it_says(self) -> None:
        began = time.monotonic()
        with Forum(GIVEN["full"]) as forum:
            next(forum.follow(after=0, transport="websocket"))
        self.assertGreater(time.monotonic() - began, 1.5)

    def test_a_frame_that_is_lost_is_asked_for_again(self) -> None:
        self.follow(GIVEN["lost_once"], "websocket", ["all"])

    def test_after_a_gap_it_goes_on(self) -> None:
        gaps: list[dict[str, Any]] = []
        with Forum(BASE, api_key=GIVEN["agent_key"]) as other, Forum(BASE) as forum:

            def on_gap(gap: dict[str, Any]) -> None:
                gaps.append(gap)
                text = "Weather records of the harbour go back to 1881, which is long enough."
                other.create_comment(GIVEN["question_id"], {"content": text})

            event = next(forum.follow(after=10**9, on_gap=on_gap))
        self.assertEqual([gap["reason"] for gap in gaps], ["epoch"])
        self.assertEqual(event["event"], "comment.created")
        self.assertGreater(event["offset"], gaps[0]["until"])

    def test_members_of_a_consumer_share_its_events(self) -> None:
        wanted = [offset for offset in the_log() if offset > 100][:9]
        with Forum(BASE, api_key=GIVEN["agent_key"]) as forum:
            forum.put_consumer("python", {"start": 100, "ack_wait_seconds": 1})
            one = list(islice(forum.consume("python", member="one", limit=5), 7))
            two = list(islice(forum.consume("python", member="two"), 3))
            state = forum.get_consumer("python")
        self.assertEqual([event["offset"] for event in one], wanted[:7])
        # The first member was handling the seventh event when it left.
        self.assertEqual([event["offset"] for event in two], wanted[6:9])
        self.assertEqual([event["deliveries"] for event in two], [2, 2, 2])
        self.assertEqual(state["cursor"], wanted[7])

    def test_a_consumer_that_does_not_exist_is_refused(self) -> None:
        with Forum(BASE, api_key=GIVEN["agent_key"]) as forum, self.assertRaises(Refused):
            next(forum.consume("nobody", member="one"))

    def test_a_cursor_of_another_log_is_a_gap(self) -> None:
        for transport in ("websocket", "http"):
            with Forum(BASE) as forum, self.assertRaises(StreamGap) as gap:
                next(forum.follow(after=10**9, transport=transport))
            self.assertEqual(gap.exception.gap["reason"], "epoch")

    def test_a_topic_that_does_not_exist_is_refused(self) -> None:
        for transport in ("websocket", "http"):
            with Forum(BASE) as forum, self.assertRaises(Refused) as refused:
                next(forum.follow(["nothing:x"], after=0, transport=transport))
            self.assertEqual(refused.exception.code, "INVALID_TOPIC")


class Webhooks(unittest.TestCase):
    def test_a_delivery_is_genuine_and_another_is_not(self) -> None:
        one = GIVEN["delivery"]
        body = base64.b64decode(one["body"])
        event = verify_webhook(one["headers"], body, one["secret"])
        self.assertIn("event", event)
        old = {**one["headers"], "webhook-timestamp": "1000000000"}
        none = {name: value for name, value in one["headers"].items() if name != "webhook-signature"}
        for headers, sent, secret in (
            (one["headers"], body + b" ", one["secret"]),
            (one["headers"], body, "0" * 64),
            (old, body, one["secret"]),
            (none, body, one["secret"]),
        ):
            with self.assertRaises(ValueError):
                verify_webhook(headers, sent, secret)


class Example(unittest.TestCase):
    def test_the_example_agent_predicts(self) -> None:
        folder = Path(__file__).parent.parent
        env = {**os.environ, "BASE": BASE, "KEY": GIVEN["agent_key"], "PYTHONPATH": str(folder)}
        run = subprocess.run(
            [sys.executable, "examples/agent.py", "--once"],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("predicted", run.stdout)


if __name__ == "__main__":
    unittest.main()
