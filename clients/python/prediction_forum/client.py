"""The clients: `AsyncForum`, and `Forum`, which runs it on an event loop of its own.

A call is tried again only where that is safe:

    408, 429             the call was not begun; after the Retry-After
    409 in progress      an earlier try of this call is still at work
    502, 503, 504, lost  it may have been done; a POST or PATCH has one Idempotency-Key for all its
                         tries, so that a repeat is the same call
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from .backoff import backoff_s
from .digest import Mismatch
from .errors import NoAnswer, Refused, StreamGap
from .stream import OnGap, Stream
from .wire import AsyncOperations, LogEvent, Operations, TakeEventsAnswerEventsItem

T = TypeVar("T")


def _retry_after_s(answer: httpx.Response) -> float | None:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isdigit() else None


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _refusal(answer: httpx.Response) -> Refused:
    """The fault of an answer; one that is not the service's own, a proxy's perhaps, is made up."""
    body = _json(answer)
    status = answer.status_code
    fault = {
        "code": "UNAVAILABLE" if status >= 500 else "INVALID_REQUEST",
        "error": f"The service answered {status}.",
        "category": "internal",
        "retryable": status >= 500,
        **(body if isinstance(body, dict) else {}),
        "status": status,
    }
    return Refused(fault, _retry_after_s(answer))


def _wait_before_retry_s(answer: httpx.Response | None, tries: int) -> float | None:
    """Seconds until the next try; None when there is to be none."""
    usual_s = 0.05 + backoff_s(tries, 0.2, 5.0)
    if answer is None:
        return usual_s
    after_s = _retry_after_s(answer) or 0.0
    if answer.status_code in (408, 429):
        return after_s + usual_s
    if answer.status_code == 409:
        body = _json(answer)
        in_progress = isinstance(body, dict) and body.get("code") == "IDEMPOTENCY_IN_PROGRESS"
        return max(after_s, usual_s) if in_progress else None
    return max(after_s, usual_s) if answer.status_code in (502, 503, 504) else None


def _value(answer: httpx.Response) -> Any:
    if not answer.content:
        return None
    kind = answer.headers.get("content-type", "")
    if kind.startswith("application/json"):
        return answer.json()
    is_text = kind.startswith("text/") or any(word in kind for word in ("json", "xml", "yaml"))
    return answer.text if is_text else answer.content


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


class AsyncForum(AsyncOperations):
    """A forum, with one method for each operation. `async with` closes its connections."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        timeout_s: float = 10.0,
        patience_s: float = 30.0,
    ) -> None:
        """`timeout_s` is for one try of a call, `patience_s` for all its tries."""
        if not base_url.startswith(("http://", "https://")):
            like = "https://forum.example or http://127.0.0.1:8080"
            raise ValueError(f"base_url is the whole address of the service, like {like}, not {base_url}.")
        self.base_url = base_url.rstrip("/")
        self.headers = dict(headers or {})
        if api_key is not None:
            self.headers["x-api-key"] = api_key
        if token is not None:
            self.headers["authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._http = httpx.AsyncClient(headers=self.headers, timeout=timeout_s)

    async def request(
        self,
        method: str,
        path: str,
        params: dict[str, Any],
        query: dict[str, Any],
        body: Any,
        idempotency_key: str | None,
    ) -> Any:
        url = self.base_url + path.format(**{k: quote(str(v), safe="") for k, v in params.items()})
        sent = {name: _word(value) for name, value in query.items() if value is not None}
        headers = {}
        if method in ("POST", "PATCH"):
            headers["idempotency-key"] = idempotency_key or str(uuid.uuid4())
        if body is not None:
            headers["content-type"] = "application/json"
        content = None if body is None else json.dumps(body).encode()
        wait_s = query.get("wait") or (body.get("wait") if isinstance(body, dict) else None)
        timeout_s = self._timeout_s + float(wait_s or 0)
        ends = time.monotonic() + self._patience_s
        tries = 0
        while True:
            answer: httpx.Response | None = None
            why = ""
            try:
                answer = await self._http.request(
                    method, url, params=sent, content=content, headers=headers, timeout=timeout_s
                )
            except httpx.TransportError as error:
                why = str(error) or type(error).__name__
            if answer is not None and answer.status_code < 400:
                return _value(answer)
            wait_s = _wait_before_retry_s(answer, tries)
            if wait_s is None or time.monotonic() + wait_s > ends:
                if answer is not None:
                    raise _refusal(answer)
                raise NoAnswer(f"{method} {url}: no answer ({why}).", method != "GET")
            tries += 1
            await asyncio.sleep(wait_s)

    def follow(
        self,
        topics: Sequence[str] = ("all",),
        *,
        after: int | None = None,
        filter: dict[str, Any] | None = None,
        transport: str = "auto",
        on_gap: OnGap | None = None,
        on_mismatch: Callable[[Mismatch], None] | None = None,
    ) -> AsyncGenerator[LogEvent, None]:
        """The events of these topics in their order, each once, over as many connections as it takes.

        `after` is the offset of the last event that was handled; None begins with what happens from
        now on. `transport` is "websocket", "http" (long polling), or "auto", which polls while no
        websocket can be opened. `on_gap` gets what is missing and cannot be had, and the stream goes
        on after it; without it the stream ends with `StreamGap`. `on_mismatch` gets every part in
        which what came over the websocket is not the log, by its digest.
        """
        stream = Stream(self, list(topics), after, filter or {}, transport, on_gap, on_mismatch)
        return stream.events()

    async def consume(
        self, name: str, *, member: str, limit: int = 10, on_gap: OnGap | None = None
    ) -> AsyncGenerator[TakeEventsAnswerEventsItem, None]:
        """Events of a durable consumer, as one of its members, for as long as the service is away.

        An event is done when the next one is asked for; what is done of the `limit` events that were
        taken together is acknowledged in one call, so all of them are to be done within the
        `ack_wait_seconds` of the consumer. Leaving the loop, by an exception or otherwise,
        leaves the event at hand to be delivered again. `on_gap` is that of `follow`.
        """
        while True:
            taken = await self._persist(
                lambda: self.take_events(name, {"member": member, "limit": limit, "wait": 25})
            )
            gap = taken["gap"]
            if gap is not None:
                if on_gap is None:
                    raise StreamGap(dict(gap))
                on_gap(dict(gap))
            done: list[int] = []
            try:
                for event in taken["events"]:
                    yield event
                    done.append(event["offset"])
            finally:
                if done:
                    await self._persist(
                        lambda: self.acknowledge_events(name, {"member": member, "offsets": done})
                    )

    async def _persist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Makes a call that may be repeated until the service answers."""
        tries = 0
        while True:
            try:
                return await call()
            except NoAnswer:
                pass
            except Refused as refused:
                if not refused.retryable:
                    raise
            tries += 1
            await asyncio.sleep(0.1 + backoff_s(tries, 0.2, 10.0))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncForum:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


class Forum(Operations):
    """The same for programs without an event loop: `AsyncForum` on a thread of its own."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        timeout_s: float = 10.0,
        patience_s: float = 30.0,
    ) -> None:
        self._forum = AsyncForum(
            base_url,
            api_key=api_key,
            token=token,
            headers=headers,
            timeout_s=timeout_s,
            patience_s=patience_s,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def request(
        self,
        method: str,
        path: str,
        params: dict[str, Any],
        query: dict[str, Any],
        body: Any,
        idempotency_key: str | None,
    ) -> Any:
        return self._run(self._forum.request(method, path, params, query, body, idempotency_key))

    def follow(
        self,
        topics: Sequence[str] = ("all",),
        *,
        after: int | None = None,
        filter: dict[str, Any] | None = None,
        transport: str = "auto",
        on_gap: OnGap | None = None,
        on_mismatch: Callable[[Mismatch], None] | None = None,
    ) -> Iterator[LogEvent]:
        """As `AsyncForum.follow`."""
        stream = Stream(self._forum, list(topics), after, filter or {}, transport, on_gap, on_mismatch)
        return self._iterate(stream.events())

    def consume(
        self, name: str, *, member: str, limit: int = 10, on_gap: OnGap | None = None
    ) -> Iterator[TakeEventsAnswerEventsItem]:
        """As `AsyncForum.consume`."""
        return self._iterate(self._forum.consume(name, member=member, limit=limit, on_gap=on_gap))

    def _iterate(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        async def next_item() -> T:
            return await items.__anext__()

        async def end() -> None:
            await items.aclose()

        try:
            while True:
                yield self._run(next_item())
        except StopAsyncIteration:
            return
        finally:
            if not self._loop.is_closed():
                self._run(end())

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._run(self._forum.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Forum:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()
