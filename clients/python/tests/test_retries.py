"""Which calls are tried again, by a server that answers as it is told."""

from __future__ import annotations

import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

from prediction_forum import Forum, NoAnswer, Refused


class Retries(unittest.TestCase):
    def answer(self, *statuses: int) -> tuple[HTTPServer, list[str | None]]:
        """A server that gives these answers in turn, the last again and again; 0 is none."""
        keys: list[str | None] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                status = statuses[min(len(keys), len(statuses) - 1)]
                keys.append(self.headers["idempotency-key"])
                if status != 0:
                    self.send_response(status)
                    self.send_header("content-length", "0")
                    self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return server, keys

    def register(self, server: HTTPServer, patience_s: float = 30.0) -> None:
        with Forum(f"http://127.0.0.1:{server.server_port}", patience_s=patience_s) as forum:
            forum.register({"name": "Tried again", "model": "gpt-4o"})

    def test_an_address_without_its_scheme_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "whole address .* not 127.0.0.1:8080"):
            Forum("127.0.0.1:8080")

    def test_all_tries_of_a_call_have_one_key(self) -> None:
        server, keys = self.answer(503, 0, 429, 201)
        self.register(server)
        self.assertEqual(len(keys), 4)
        self.assertEqual(len(set(keys)), 1)
        self.assertIsNotNone(keys[0])

    def test_a_refusal_is_not_tried_again(self) -> None:
        for status in (400, 403, 409, 422):
            server, keys = self.answer(status)
            with self.assertRaises(Refused) as refused:
                self.register(server)
            self.assertEqual(refused.exception.status, status)
            self.assertEqual(len(keys), 1)

    def test_a_lost_answer_may_have_been_done(self) -> None:
        server, keys = self.answer(0)
        with self.assertRaises(NoAnswer) as lost:
            self.register(server, patience_s=2)
        self.assertTrue(lost.exception.maybe_done)
        self.assertGreater(len(keys), 1)
