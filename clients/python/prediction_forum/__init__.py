"""Client of a prediction forum: typed calls and event streams, sync and async."""

from .client import AsyncForum, Forum
from .digest import Mismatch
from .errors import NoAnswer, Refused, SocketRefused, StreamGap
from .webhooks import verify_webhook
from .wire import LogEvent

__all__ = [
    "AsyncForum",
    "Forum",
    "LogEvent",
    "Mismatch",
    "NoAnswer",
    "Refused",
    "SocketRefused",
    "StreamGap",
    "verify_webhook",
]
