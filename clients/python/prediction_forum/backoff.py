"""How long to wait before another try."""

import random


def backoff_s(tries: int, base_s: float, most_s: float) -> float:
    """A random time of up to `base_s`, doubled with each try, and at most `most_s`."""
    longest_s: float = min(most_s, base_s * 2.0 ** min(tries, 20))
    return random.random() * longest_s
