"""What can go wrong, as exceptions that tell what to do about it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin


class Refused(Exception):
    """The service said no. The message says what to do."""

    def __init__(self, fault: dict[str, Any], retry_after_s: float | None = None) -> None:
        super().__init__(fault["error"])
        self.fault = fault
        self.code: str = fault["code"]
        # A refusal of the socket has none.
        self.status: int = fault.get("status", 0)
        self.retryable: bool = fault.get("retryable", False)
        self.fields: list[dict[str, Any]] = fault.get("fields", [])
        self.request_id: str | None = fault.get("request_id")
        self.retry_after_s = retry_after_s


def redirected(method: str, base_url: str, url: str, location: str, status: int) -> Refused:
    """The refusal of a redirect; it names the address to use instead."""
    target = url[len(base_url) :]
    try:
        to = urljoin(url, location) if location else ""
    except ValueError:
        to = location
    use = f"Use {to[: -len(target)]}" if to.endswith(target) else "Use what it leads to"
    where = f" to {to}" if to else ""
    error = f"{method} {url} is redirected{where}. {use} as the address of the service."
    fault = {"code": "REDIRECTED", "error": error, "category": "internal", "retryable": False}
    return Refused({**fault, "status": status})


class NoAnswer(Exception):
    """No answer came, or none that the service could have sent: time was up, or a proxy answered.

    `maybe_done` is false where the call cannot have had an effect.
    """

    def __init__(self, message: str, maybe_done: bool) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class StreamGap(Exception):
    """Events are missing and cannot be had: nothing is missed unnoticed."""

    def __init__(self, gap: dict[str, Any]) -> None:
        super().__init__(f"Events after offset {gap.get('after')} are missing ({gap.get('reason')}).")
        self.gap = gap


class SocketRefused(Exception):
    """The service closed the socket, and connecting again in the same way would not help."""

    def __init__(self, close_code: int, reason: str) -> None:
        super().__init__(f"The service closed the socket with {close_code} ({reason}).")
        self.close_code = close_code
