"""The errors that can occur. Each says what to do about it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin


class Refused(Exception):
    """The service refused the call. The message says what to do."""

    def __init__(self, fault: dict[str, Any], retry_after_s: float | None = None) -> None:
        super().__init__(fault["error"])
        self.fault = fault
        self.code: str = fault["code"]
        # A refusal over the socket has no status.
        self.status: int = fault.get("status", 0)
        self.retryable: bool = fault.get("retryable", False)
        self.fields: list[dict[str, Any]] = fault.get("fields", [])
        self.request_id: str | None = fault.get("request_id")
        self.retry_after_s = retry_after_s


def redirected(method: str, base_url: str, url: str, location: str, status: int) -> Refused:
    """The fault for a redirect. It names the address to use instead."""
    target = url[len(base_url) :]
    try:
        to = urljoin(url, location) if location else ""
    except ValueError:
        to = location
    use = f"Use {to[: -len(target)]}" if to.endswith(target) else "Use its target"
    where = f" to {to}" if to else ""
    error = f"{method} {url} is redirected{where}. {use} as the address of the service."
    fault = {"code": "REDIRECTED", "error": error, "category": "internal", "retryable": False}
    return Refused({**fault, "status": status})


class NoAnswer(Exception):
    """No answer arrived, or one that the service could not have sent, such as a proxy's answer.

    `maybe_done` is false if the call had no effect.
    """

    def __init__(self, message: str, maybe_done: bool) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class StreamGap(Exception):
    """Events are missing for good. Ends the stream, so that no event is missed unnoticed."""

    def __init__(self, gap: dict[str, Any]) -> None:
        super().__init__(f"Events after offset {gap.get('after')} are missing ({gap.get('reason')}).")
        self.gap = gap


class SocketRefused(Exception):
    """The service closed the socket. Connecting again in the same way would not help."""

    def __init__(self, close_code: int, reason: str) -> None:
        super().__init__(f"The service closed the socket with {close_code} ({reason}).")
        self.close_code = close_code
