"""The clients: `AsyncForum`, and `Forum`, which runs it on its own event loop.

A call is retried only if that is safe:

    3xx                  never: the credentials are for this address, and a POST stays a POST
    408, 429             the call was not started; waits for the Retry-After
    409 in progress      an earlier try of this call is still running
    502, 503, 504, lost  it may have been done; a POST or PATCH has one Idempotency-Key for all its
                         tries, so that a repeat is the same call
    unusable             broken or missing JSON, or another content type: the same as lost
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import httpx

from .backoff import backoff_s
from .digest import Mismatch
from .errors import NoAnswer, Refused, StreamGap, redirected
from .split import join_lists, join_pages, split_query
from .stream import OnGap, Stream
from .wire import ANSWER_TYPES, AsyncOperations, LogEvent, Operations, TakeEventsAnswerEventsItem

T = TypeVar("T")


LONGEST_RETRY_S = 3600.0


def _retry_after_s(answer: httpx.Response) -> float | None:
    """The wait in a `Retry-After`, which contains seconds or a date. None if it is unusable."""
    text = answer.headers.get("retry-after", "")
    try:
        wait_s = float(text)
    except ValueError:
        try:
            wait_s = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return None if math.isnan(wait_s) else min(max(wait_s, 0.0), LONGEST_RETRY_S)


def _media_type(answer: httpx.Response) -> str:
    kind: str = answer.headers.get("content-type", "")
    return kind.split(";")[0].strip().lower()


def _is_json(kind: str) -> bool:
    return re.fullmatch(r"application/([\w.+-]+\+)?json", kind) is not None


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _refusal(answer: httpx.Response) -> Refused:
    """Returns the fault of an answer. If it is not the service's own answer, makes one up."""
    body = _json(answer)
    status = answer.status_code
    fault = {
        "code": "UNAVAILABLE" if status >= 500 else "INVALID_REQUEST",
        "error": f"The service answered {status}.",
        "category": "internal",
        "retryable": status >= 500 or status in (408, 429),
        **(body if isinstance(body, dict) else {}),
        "status": status,
    }
    return Refused(fault, _retry_after_s(answer))


def _wait_before_retry_s(answer: httpx.Response | None, tries: int) -> float | None:
    """Returns the seconds until the next try, or None if the call must not be retried."""
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


def _refuse_constant(name: str) -> Any:
    """Python accepts NaN and Infinity, which are not valid JSON."""
    raise ValueError(f"{name} is not JSON")


def _value(answer: httpx.Response, expected: list[str]) -> Any:
    """Returns the content of the answer. ValueError if the service could not have sent it."""
    if not answer.content and "" in expected:
        return None
    kind = _media_type(answer)
    if _is_json(kind) and "application/json" in expected:
        return answer.json(parse_constant=_refuse_constant)
    if kind not in expected:
        wanted = " or ".join(one for one in expected if one) or "no content"
        raise ValueError(f"{kind or 'no content type'} instead of {wanted}")
    is_text = kind.startswith("text/") or any(word in kind for word in ("json", "xml", "yaml"))
    return answer.text if is_text else answer.content


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


class AsyncForum(AsyncOperations):
    """A forum with one method per operation. `async with` closes its connections."""

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
        """`timeout_s` limits one try of a call, `patience_s` all its tries together."""
        if not base_url.startswith(("http://", "https://")):
            like = "https://forum.example or http://127.0.0.1:8080"
            raise ValueError(f"base_url must be the full address, like {like}, not {base_url}.")
        self.base_url = base_url.rstrip("/")
        self.headers = dict(headers or {})
        if api_key is not None:
            self.headers["x-api-key"] = api_key
        if token is not None:
            self.headers["authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._http = httpx.AsyncClient(headers=self.headers, timeout=timeout_s, follow_redirects=False)

    async def request(
        self,
        method: str,
        path: str,
        params: dict[str, Any],
        query: dict[str, Any],
        body: Any,
        idempotency_key: str | None,
    ) -> Any:
        """Makes one call. Splits long lists of ids into several requests and joins the answers."""
        filled = path.format(**{k: quote(str(v), safe="") for k, v in params.items()})

        def url_of(query: dict[str, Any]) -> str:
            sent = {name: _word(value) for name, value in query.items() if value is not None}
            return self.base_url + filled + (f"?{urlencode(sent)}" if sent else "")

        expected = ANSWER_TYPES.get(f"{method} {path}", ["application/json"])
        whole = query.get("format") == "ndjson"
        parts = [query] if whole else split_query(query, lambda one: len(url_of(one)))
        if len(parts) == 1:
            wait_s = float(query.get("wait") or 0)
            return await self._call(method, url_of(query), body, idempotency_key, expected, wait_s)
        is_log = path == "/api/events"
        more: dict[str, Any] = {"wait": None} if is_log else {"limit": 100}
        ends = time.monotonic() + float(query.get("wait") or 0)
        while True:
            urls = [url_of({**one, **more}) for one in parts]
            pages = [await self._call(method, url, None, None, expected, 0) for url in urls]
            if not is_log:
                return join_lists(pages)
            page = join_pages(pages, int(query.get("limit") or 20))
            if page["events"] or page["gap"] or time.monotonic() >= ends:
                return page
            await asyncio.sleep(1)

    async def _call(
        self,
        method: str,
        url: str,
        body: Any,
        idempotency_key: str | None,
        expected: list[str],
        wait_s: float,
    ) -> Any:
        headers = {}
        if method in ("POST", "PATCH"):
            headers["idempotency-key"] = idempotency_key or str(uuid.uuid4())
        if body is not None:
            headers["content-type"] = "application/json"
        content = None if body is None else json.dumps(body).encode()
        if isinstance(body, dict):
            wait_s = float(body.get("wait") or 0)
        timeout_s = self._timeout_s + wait_s
        ends = time.monotonic() + self._patience_s
        tries = 0
        while True:
            answer: httpx.Response | None = None
            why = ""
            try:
                answer = await self._http.request(
                    method, url, content=content, headers=headers, timeout=timeout_s
                )
            except httpx.RequestError as error:
                why = str(error) or type(error).__name__
            if answer is not None and answer.status_code < 400:
                if answer.status_code == 304 and "if-none-match" in answer.request.headers:
                    return None
                if answer.status_code >= 300 and answer.status_code != 304:
                    location = answer.headers.get("location", "")
                    raise redirected(method, self.base_url, url, location, answer.status_code)
                try:
                    return _value(answer, expected)
                except ValueError as error:
                    why = f"not usable: {error}"
                    answer = None
            retry_s = _wait_before_retry_s(answer, tries)
            if retry_s is None or time.monotonic() + retry_s > ends:
                if answer is not None:
                    raise _refusal(answer)
                raise NoAnswer(f"{method} {url}: no answer ({why}).", method != "GET")
            tries += 1
            await asyncio.sleep(retry_s)

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
        """Yields the events of these topics in order, each once. Reconnects as often as needed.

        `after` is the offset of the last handled event. None starts with new events. `transport` is
        "websocket", "http" (long polling), or "auto", which polls while no websocket can be opened.
        `on_gap` is called if events are missing for good, and the stream continues after them.
        Without it the stream ends with `StreamGap`. `on_mismatch` is called for every part of the
        websocket's events that differs from the log by its digest.
        """
        stream = Stream(self, list(topics), after, filter or {}, transport, on_gap, on_mismatch)
        return stream.events()

    async def consume(
        self, name: str, *, member: str, limit: int = 10, on_gap: OnGap | None = None
    ) -> AsyncGenerator[TakeEventsAnswerEventsItem, None]:
        """Yields events of a durable consumer to a member. Retries while the service is down.

        An event is done when the next one is requested. The `limit` events that were taken together
        are acknowledged in one call, so handle all of them within the consumer's
        `ack_wait_seconds`. If you leave the loop, by an exception or otherwise, the current event
        is delivered again. `on_gap` works as in `follow`.
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
        """Repeats a call until the service answers. The call must be safe to repeat."""
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
    """The same for programs without an event loop: `AsyncForum` on its own thread."""

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
        """Like `AsyncForum.follow`."""
        stream = Stream(self._forum, list(topics), after, filter or {}, transport, on_gap, on_mismatch)
        return self._iterate(stream.events())

    def consume(
        self, name: str, *, member: str, limit: int = 10, on_gap: OnGap | None = None
    ) -> Iterator[TakeEventsAnswerEventsItem]:
        """Like `AsyncForum.consume`."""
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
