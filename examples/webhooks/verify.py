import base64
import hashlib
import hmac
import json
import time

TOLERANCE_S = 300


def verify_webhook(headers, raw_body: bytes, secret: str) -> dict:
    """Returns the event of a delivery. ValueError if it does not come from the forum or is too old.

    The names in `headers` must be lower-case.
    """
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit()):
        raise ValueError("not a recent timestamp")
    if abs(time.time() - int(timestamp)) > TOLERANCE_S:
        raise ValueError("not a recent timestamp")
    signed = f"{message_id}.{timestamp}.".encode() + raw_body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    signatures = headers.get("webhook-signature", "").encode().split(b" ")
    if not any([hmac.compare_digest(given, expected) for given in signatures]):
        raise ValueError("no signature matches this secret")
    return json.loads(raw_body)
