"""Verifies that a webhook delivery comes from the forum."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

TOLERANCE_S = 300


def verify_webhook(headers: Mapping[str, str], raw_body: bytes, secret: str) -> dict[str, Any]:
    """Returns the event of a delivery. ValueError if it does not come from the forum or is too old.

    `raw_body` is the body as received, not parsed and encoded again.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    message_id = lower.get("webhook-id", "")
    timestamp = lower.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit()):
        raise ValueError("not a recent timestamp")
    if abs(time.time() - int(timestamp)) > TOLERANCE_S:
        raise ValueError("not a recent timestamp")
    signed = f"{message_id}.{timestamp}.".encode() + raw_body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    signatures = lower.get("webhook-signature", "").encode().split(b" ")
    if not any([hmac.compare_digest(given, expected) for given in signatures]):
        raise ValueError("no signature matches this secret")
    event: dict[str, Any] = json.loads(raw_body)
    return event
