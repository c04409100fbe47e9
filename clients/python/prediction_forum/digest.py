"""Proves that no event of the log is missing: compares the digest of the events received over the
websocket with the log's digest. For the formula see docs/how-to/follow-events.md, "Proof that
nothing is missing".
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypedDict

from .errors import NoAnswer, Refused

if TYPE_CHECKING:
    from .client import AsyncForum

# Time between two reads of the record while all digests match.
RECORD_EVERY_S = 2.0


class Mismatch(TypedDict):
    """The events received between two offsets differ from the log."""

    after: int
    until: int
    # Digests at `until`: of the received events, of the process that sent them, and of the record.
    came: str
    tick: str | None
    record: str | None
    # The part that is wrong, according to the record. "stream": something was lost, changed or
    # repeated on its way. "node": the process's own view of the log is wrong. "tick": only its tick
    # is wrong. "unknown": the record could not be read.
    wrong: Literal["stream", "node", "tick", "unknown"]


class DigestCheck:
    """After a mismatch, the check continues from the correct digest, so it is reported once."""

    def __init__(self, forum: AsyncForum, report: Callable[[Mismatch], None]) -> None:
        self._forum = forum
        self._report = report
        self._digest: str | None = None
        self._newest = 0
        self._agreed = 0
        self._looked = -RECORD_EVERY_S

    def forget(self) -> None:
        """Events arrived over another transport. `begin` says where the check continues."""
        self._digest = None

    async def begin(self, offset: int) -> None:
        """The next event comes after this offset. No effect if the digest is already known."""
        if self._digest is None:
            self._digest = await self._read_record(offset)
            self._newest = self._agreed = offset

    async def add(self, offset: int, id: str, text: str) -> None:
        """`text` is the event's frame, which ends with the record's bytes."""
        if self._digest is not None:
            body = "{" + text[text.index('"event":') :]
            line = f"{self._digest} {offset} {id} {body}"
            self._digest = hashlib.sha256(line.encode()).hexdigest()
        is_full = offset // 1_000 != self._newest // 1_000
        self._newest = offset
        if is_full:
            await self.compare(offset, None)

    async def compare(self, offset: int, tick: str | None) -> None:
        """Everything up to `offset` has arrived. `tick` is the service's digest at that offset."""
        came = self._digest
        if came is None:
            return await self.begin(offset)
        is_due = time.monotonic() - self._looked > RECORD_EVERY_S
        record = None
        if is_due or tick not in (None, came):
            record = await self._read_record(offset)
            self._looked = time.monotonic()
        if tick is None and record is None:
            return
        after, self._agreed = self._agreed, offset
        if (tick or came) == (record or came) == came:
            return
        # Checks the following events against the record soon, starting from the correct digest.
        self._looked = -RECORD_EVERY_S
        self._digest = record or tick
        wrong: Literal["stream", "node", "tick", "unknown"]
        if record is None:
            wrong = "unknown"
        elif record == came:
            wrong = "tick"
        else:
            wrong = "node" if tick == came else "stream"
        self._report(
            {"after": after, "until": offset, "came": came, "tick": tick, "record": record, "wrong": wrong}
        )

    async def _read_record(self, offset: int) -> str | None:
        """None if the record has no digest for this offset, or does not answer."""
        try:
            answer = await self._forum.read_digests(at=offset, from_=offset, limit=1)
        except (NoAnswer, Refused):
            return None
        return answer["at"]["digest"]
