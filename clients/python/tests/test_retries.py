"""Retries and unusable answers, against a server with scripted answers."""

from __future__ import annotations

import json
import threading
import time
import unittest
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple

from prediction_forum import Forum, NoAnswer, Refused
from prediction_forum.split import ADDRESS_MOST


class Answer(NamedTuple):
    status: int
    body: str = "{}"
    headers: dict[str, str] = {"content-type": "application/json"}


class Request(NamedTuple):
    method: str
    path: str
    key: str | None


def redirect(status: int, location: str) -> Answer:
    return Answer(status, "", {"location": location})


class Served(unittest.TestCase):
    def answer(self, *answers: int | Answer) -> tuple[str, list[Request]]:
        """A server that gives these answers in turn and repeats the last one. 0 means no answer."""
        seen: list[Request] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                self.rfile.read(int(self.headers["content-length"] or 0))
                given = answers[min(len(seen), len(answers) - 1)]
                seen.append(Request(self.command, self.path, self.headers["idempotency-key"]))
                status, body, headers = Answer(given) if isinstance(given, int) else given
                self.close_connection = True
                if status != 0:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("connection", "close")
                    self.send_header("content-length", str(len(body.encode())))
                    self.end_headers()
                    self.wfile.write(body.encode())

            do_GET = do_POST = handle_any

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}", seen

    def register(self, base: str, patience_s: float = 30.0) -> Any:
        with Forum(base, patience_s=patience_s) as forum:
            return forum.register({"name": "Tried again", "model": "gpt-4o"})


class Retries(Served):
    def test_an_address_without_its_scheme_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "full address, .* not 127.0.0.1:8080"):
            Forum("127.0.0.1:8080")

    def test_all_tries_of_a_call_have_one_key(self) -> None:
        base, seen = self.answer(503, 0, 429, 201)
        self.register(base)
        self.assertEqual(len(seen), 4)
        self.assertEqual(len({key for _, _, key in seen}), 1)
        self.assertIsNotNone(seen[0].key)

    def test_a_refusal_is_not_tried_again(self) -> None:
        for status in (400, 403, 409, 422):
            base, seen = self.answer(status)
            with self.assertRaises(Refused) as refused:
                self.register(base)
            self.assertEqual(refused.exception.status, status)
            self.assertEqual(len(seen), 1)

    def test_a_lost_answer_may_have_been_done(self) -> None:
        base, seen = self.answer(0)
        with self.assertRaises(NoAnswer) as lost:
            self.register(base, patience_s=2)
        self.assertTrue(lost.exception.maybe_done)
        self.assertGreater(len(seen), 1)

    def test_retry_after_is_a_number_or_a_date_and_never_long_or_negative(self) -> None:
        soon = formatdate(time.time() + 40, usegmt=True)
        texts = ("2.5", soon, "-5", "nan", "soon", "", "99999999999", "inf", formatdate(0, usegmt=True))
        waits = []
        for text in texts:
            base, _ = self.answer(Answer(429, "{}", {"retry-after": text}))
            with self.assertRaises(Refused) as refused:
                self.register(base, patience_s=0)
            self.assertTrue(refused.exception.retryable)
            waits.append(refused.exception.retry_after_s)
        self.assertAlmostEqual(waits.pop(1) or 0, 40, delta=5)
        self.assertEqual(waits, [2.5, 0, None, None, None, 3600, 3600, 0])


class OddAnswers(Served):
    def test_a_redirect_is_refused_and_names_the_address(self) -> None:
        for status in (301, 302, 303, 307, 308):
            elsewhere, stolen = self.answer(201)
            base, seen = self.answer(redirect(status, f"{elsewhere}/api/register"))
            with self.assertRaisesRegex(Refused, f"Use {elsewhere} as the address") as refused:
                self.register(base)
            self.assertEqual((refused.exception.code, refused.exception.status), ("REDIRECTED", status))
            self.assertEqual((len(seen), stolen), (1, []))
        base, _ = self.answer(Answer(304, "", {}))
        with self.assertRaises(NoAnswer):
            self.register(base, patience_s=0)

    def test_streams_end_at_a_redirect(self) -> None:
        elsewhere, stolen = self.answer(200)
        base, _ = self.answer(redirect(302, elsewhere))
        for transport in ("websocket", "http", "auto"):
            with Forum(base, api_key="secret") as forum, self.assertRaisesRegex(Refused, elsewhere):
                next(forum.follow(after=0, transport=transport))
        with Forum(base, api_key="secret") as forum, self.assertRaisesRegex(Refused, elsewhere):
            next(forum.consume("mine", member="m"))
        self.assertEqual(stolen, [])

    def test_what_is_no_json_of_the_service_is_no_answer(self) -> None:
        page = {"content-type": "text/html"}
        kind = {"content-type": "application/json"}
        for answer in (
            Answer(200, "<p>Log in</p>", page),
            Answer(200, "{}", page),
            Answer(200, "{", kind),
            Answer(200, "", kind),
            Answer(200, "{}", {}),
            Answer(204, "", {}),
        ):
            base, _ = self.answer(answer)
            with self.assertRaisesRegex(NoAnswer, "not usable"):
                self.register(base, patience_s=0)

    def test_media_types_ignore_case(self) -> None:
        for kind in ("Application/JSON; Charset=UTF-8", "application/vnd.forum+json"):
            base, _ = self.answer(Answer(201, '{"api_key": "é"}', {"Content-Type": kind}))
            self.assertEqual(self.register(base), {"api_key": "é"})

    def test_a_refusal_that_is_broken_is_one_all_the_same(self) -> None:
        base, _ = self.answer(Answer(403, "{", {"content-type": "application/problem+json"}))
        with self.assertRaises(Refused) as refused:
            self.register(base)
        self.assertEqual(refused.exception.status, 403)


class LongLists(Served):
    def test_lists_of_ids_are_asked_for_in_parts(self) -> None:
        ids = [f"0190a000-0000-7000-8000-{n:012}" for n in range(100)]
        page = Answer(200, json.dumps({"total": 1, "questions": [{"id": "x"}], "next_cursor": None}))
        base, seen = self.answer(page)
        with Forum(base) as forum:
            found: Any = forum.list_questions(ids=ids, status="all")
        self.assertGreater(len(seen), 1)
        self.assertEqual(found, {"total": len(seen), "questions": [{"id": "x"}] * len(seen), "next_cursor": None})
        self.assertLess(max(len(base + path) for _, path, _ in seen), ADDRESS_MOST)
        for id in ids:
            self.assertEqual(sum(id in path for _, path, _ in seen), 1)

    def test_the_log_of_many_topics_is_read_up_to_where_all_parts_go(self) -> None:
        topics = [f"question:0190a000-0000-7000-8000-{n:012}" for n in range(30)]
        rest = {"gap": None, "next_cursor": None, "head": 9, "oldest": 1}
        one = {"events": [{"offset": 2}, {"offset": 8}], "next": 9, **rest}
        two = {"events": [{"offset": 2}, {"offset": 3}], "next": 3, **rest}
        base, seen = self.answer(Answer(200, json.dumps(one)), Answer(200, json.dumps(two)))
        with Forum(base) as forum:
            found: Any = forum.list_events(topic=topics, after=1, wait=25)
        self.assertEqual([event["offset"] for event in found["events"]], [2, 3])
        self.assertEqual((found["next"], found["next_cursor"]), (3, "3"))
        self.assertNotIn("wait=", "".join(path for _, path, _ in seen))


if __name__ == "__main__":
    unittest.main()
