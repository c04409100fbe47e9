"""Proof that nothing of the log is missing: the digest of what came over the websocket, compared with
that of the log. The formula is in docs/streaming.md, "Proof that nothing is missing".
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypedDict

from .errors import NoAnswer, Refused

if TYPE_CHECKING:
    from .client import AsyncForum

# Between two looks at the record while nothing is wrong.
RECORD_EVERY_S = 2.0


class Mismatch(TypedDict):
    """What came between two offsets is not what the log has there."""

    after: int
    until: int
    # Digests at `until`: of what came, of the process that sent it, and of the record.
    came: str
    tick: str | None
    record: str | None
    # By the record: "stream", something was lost, changed or repeated on its way; "node", the process
    # has a wrong view of the log itself; "tick", only its tick is wrong; "unknown", the record could
    # not be read.
    wrong: Literal["stream", "node", "tick", "unknown"]


class DigestCheck:
    """What was reported is taken as it is from then on, so that each mismatch is reported once."""

    def __init__(self, forum: AsyncForum, report: Callable[[Mismatch], None]) -> None:
        self._forum = forum
        self._report = report
        self._digest: str | None = None
        self._newest = 0
        self._agreed = 0
        self._looked = -RECORD_EVERY_S

    def forget(self) -> None:
        """Something came in another way; `begin` says where it goes on."""
        self._digest = None

    async def begin(self, offset: int) -> None:
        """What comes next comes after this offset; without effect where the digest is known."""
        if self._digest is None:
            self._digest = await self._read_record(offset)
            self._newest = self._agreed = offset

    async def add(self, offset: int, id: str, text: str) -> None:
        """`text` is the frame of the event, which ends with the bytes of the record."""
        if self._digest is not None:
            body = "{" + text[text.index('"event":') :]
            line = f"{self._digest} {offset} {id} {body}"
            self._digest = hashlib.sha256(line.encode()).hexdigest()
        is_full = offset // 1_000 != self._newest // 1_000
        self._newest = offset
        if is_full:
            await self.compare(offset, None)

    async def compare(self, offset: int, tick: str | None) -> None:
        """Everything up to `offset` has come; `tick` is the digest that the service named there."""
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
        # The rest is looked at more closely, from what is right.
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
        """None when the record has none for this offset, or does not answer."""
        try:
            answer = await self._forum.read_digests(at=offset, from_=offset, limit=1)
        except (NoAnswer, Refused):
            return None
        return answer["at"]["digest"]
