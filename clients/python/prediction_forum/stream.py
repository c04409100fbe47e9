"""Events of the log in order, each once, over as many connections as needed.

Over a websocket, frames of all topics arrive in offset order, and an event on two topics arrives
twice. Each event names its predecessor on its topic (`prev`), and a tick names the newest event of
each topic. If either shows that an event is missing, it is requested again over a new connection.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from websockets.exceptions import ConnectionClosed, InvalidHandshake

from .backoff import backoff_s
from .digest import DigestCheck, Mismatch
from .errors import NoAnswer, Refused, SocketRefused, StreamGap, redirected
from .wire import LogEvent

if TYPE_CHECKING:
    from .client import AsyncForum

OnGap = Callable[[dict[str, Any]], None]

PAGE = 100
WAIT_S = 25
# After this many websockets in a row could not be opened, none is tried for this long.
POLL_S = 60.0
FAILED_MOST = 3


# The longest wait that a service can request from a stream.
WAIT_MOST_S = 60.0


class _Hole(Exception):
    """An event that the service named has not arrived."""


def _find_connect() -> tuple[Any, str]:
    """`connect` of websockets and its header argument, whose name differs in older versions."""
    try:
        module = importlib.import_module("websockets.asyncio.client")
        return module.connect, "additional_headers"
    except ImportError:
        return importlib.import_module("websockets.legacy.client").connect, "extra_headers"


def _connect(base_url: str, headers: dict[str, str]) -> Any:
    """Opens the socket. A redirect is refused: its target must not get the credentials."""
    connect, headers_name = _find_connect()
    url = "ws" + base_url[len("http") :] + "/ws"

    def refuse(location: str, status: int) -> Refused:
        to = "http" + location[len("ws") :] if location.startswith("ws") else location
        return redirected("GET", base_url, base_url + "/ws", to, status)

    def process_redirect(_: Any, error: Exception) -> Exception:
        response = getattr(error, "response", None)
        if response is None or not 300 <= response.status_code < 400:
            return error
        return refuse(response.headers.get("Location", ""), response.status_code)

    def handle_redirect(_: Any, location: str) -> None:
        raise refuse(location, 302)

    guards = {"process_redirect": process_redirect, "handle_redirect": handle_redirect}
    options = {"open_timeout": 10, "close_timeout": 1, "max_size": 2**20, headers_name: headers}
    return type("Connect", (connect,), guards)(url, **options)


class Stream:
    def __init__(
        self,
        forum: AsyncForum,
        topics: list[str],
        after: int | None,
        filter: dict[str, Any],
        transport: str,
        on_gap: OnGap | None,
        on_mismatch: Callable[[Mismatch], None] | None,
    ) -> None:
        if transport not in ("auto", "websocket", "http"):
            raise ValueError('transport must be "auto", "websocket" or "http"')
        if on_mismatch is not None and (topics != ["all"] or filter or transport == "http"):
            raise ValueError('on_mismatch is for the topic "all" without a filter, over a websocket')
        self._forum = forum
        self._topics = topics
        self._filter = filter
        self._transport = transport
        self._on_gap = on_gap
        self._check = DigestCheck(forum, on_mismatch) if on_mismatch else None
        # Everything up to this offset has arrived.
        self._cursor = after
        # Per topic of this connection: the newest offset up to which the topic is complete.
        self._proven: dict[str, int] = {}
        # Delivered offsets above the one up to which every topic is complete.
        self._seen: set[int] = set()
        self._last_hole = -1
        self._failed = 0
        self._poll_until = 0.0
        self._tries = 0
        # The wait that the service requested before it closed the connection.
        self._asked_s = 0.0

    async def events(self) -> AsyncGenerator[LogEvent, None]:
        while True:
            if self._transport == "http" or time.monotonic() < self._poll_until:
                async with aclosing(self._read_page(WAIT_S)) as page:
                    async for event in page:
                        yield event
                continue
            wait_s = 0.0
            try:
                async with aclosing(self._over_socket()) as events:
                    async for event in events:
                        yield event
            except _Hole:
                pass
            except ConnectionClosed as closed:
                wait_s = self._wait_after(closed.rcvd.code if closed.rcvd else 1006, str(closed))
            except (OSError, InvalidHandshake, asyncio.TimeoutError):
                self._failed += 1
                wait_s = 0.05 + backoff_s(self._failed, 0.2, 10.0)
                if self._transport == "auto" and self._failed >= FAILED_MOST:
                    self._failed = 0
                    self._poll_until = time.monotonic() + POLL_S
            await asyncio.sleep(wait_s)

    def _wait_after(self, code: int, reason: str) -> float:
        if 4000 <= code < 4100:
            raise SocketRefused(code, reason)
        self._tries += 1
        if 4100 <= code < 4200:
            return max(0.5, self._asked_s) + backoff_s(self._tries, 1.0, 10.0)
        return 0.02 + backoff_s(self._tries, 0.2, 10.0)

    async def _over_socket(self) -> AsyncGenerator[LogEvent, None]:
        """Reads one connection until it ends or an event is missing."""
        forum = self._forum
        async with _connect(forum.base_url, forum.headers) as socket:
            self._failed = 0
            self._asked_s = 0.0
            ask: dict[str, Any] = {"op": "subscribe", "id": 1, "topics": self._topics}
            if self._cursor is not None:
                ask["after"] = self._cursor
                self._proven = dict.fromkeys(self._topics, self._cursor)
                if self._check:
                    await self._check.begin(self._cursor)
            if self._filter:
                ask["filter"] = self._filter
            await socket.send(json.dumps(ask))
            silence_s = 30.0
            while True:
                text = str(await asyncio.wait_for(socket.recv(), silence_s))
                frame = json.loads(text)
                op = frame["op"]
                if op == "event" and self._take(frame):
                    self._tries = 0
                    if self._check:
                        await self._check.add(frame["offset"], frame["id"], text)
                    yield cast(LogEvent, frame)
                elif op == "welcome":
                    silence_s = frame.get("tick_ms", 15_000) / 1_000 * 1.5 + 1
                elif op == "subscribed":
                    self._tries = 0
                    self._prove(frame["head"])
                    if self._check:
                        await self._check.begin(frame["head"])
                elif op == "tick":
                    for topic, newest in frame.get("heads", {}).items():
                        if newest > self._proven.get(topic, newest):
                            self._miss(newest)
                    self._prove(frame["head"])
                    if self._check and "digest" in frame:
                        await self._check.compare(frame["head"], frame["digest"])
                elif op == "bye":
                    asked_ms = float(frame.get("retry_after_ms") or 0)
                    self._asked_s = min(max(asked_ms / 1_000, 0.0), WAIT_MOST_S)
                elif op == "gap":
                    break
                elif op == "error":
                    if not frame.get("retryable"):
                        raise Refused(frame)
                    await asyncio.sleep(1)
                    return
        # Too many events for a replay: read them over HTTP up to the head, then connect again.
        while True:
            before = self._cursor
            async for event in self._read_page(0):
                yield event
            if self._cursor == before:
                return

    def _take(self, frame: dict[str, Any]) -> bool:
        """Returns true if the event was not delivered before."""
        topic, offset, prev = frame["topic"], frame["offset"], frame.get("prev", 0)
        proven = self._proven.get(topic)
        if proven is not None and prev > proven:
            self._miss(prev)
        self._proven[topic] = max(offset, proven or 0)
        is_new = (proven is None or offset > proven) and offset not in self._seen
        self._seen.add(offset)
        if len(self._proven) == len(self._topics):
            self._settle()
        return is_new

    def _settle(self) -> None:
        floor = min(self._proven.values())
        self._cursor = max(floor, self._cursor or 0)
        self._seen = {offset for offset in self._seen if offset > floor}

    def _prove(self, head: int) -> None:
        """Everything up to the head has arrived on all topics."""
        for topic in self._topics:
            self._proven[topic] = max(head, self._proven.get(topic, 0))
        self._settle()

    def _miss(self, offset: int) -> None:
        if offset != self._last_hole:
            self._last_hole = offset
            raise _Hole
        self._lose({"after": self._cursor, "until": offset, "reason": "hole"})

    def _lose(self, gap: dict[str, Any]) -> None:
        if self._on_gap is None:
            raise StreamGap(gap)
        self._on_gap(gap)

    async def _read_page(self, wait_s: int) -> AsyncGenerator[LogEvent, None]:
        """Reads a page of the log over HTTP. Retries while the service is down."""
        query = {**self._filter, "topic": self._topics, "limit": PAGE}
        if self._cursor is None:
            query |= {"after": 0, "limit": 1}
        else:
            query |= {"after": self._cursor} | ({"wait": wait_s} if wait_s > 0 else {})
        while True:
            try:
                page = await self._forum.request("GET", "/api/events", {}, query, None, None)
                break
            except NoAnswer:
                await asyncio.sleep(1)
            except Refused as refused:
                if not refused.retryable:
                    raise
                await asyncio.sleep(min(refused.retry_after_s or 1, WAIT_MOST_S))
        if self._cursor is None:
            self._cursor = page["head"]
            return
        if page["gap"] is not None:
            self._lose(page["gap"])
            if page["gap"]["reason"] == "epoch":
                self._cursor = page["gap"]["until"]
                self._seen.clear()
                return
        if self._check and page["events"]:
            self._check.forget()
        for event in page["events"]:
            # The event may have arrived on a socket before it was cut.
            if event["offset"] not in self._seen:
                self._seen.add(event["offset"])
                yield event
        self._cursor = page["next"]
        self._seen = {offset for offset in self._seen if offset > page["next"]}
