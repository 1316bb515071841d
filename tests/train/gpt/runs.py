"""A small text, and options of a small GPT for it."""

from typing import Any

DOCUMENTS = [a + b + c for a in "bdk" for b in "aei" for c in ("n", "ra", "lla")]
SMALL: dict[str, Any] = {"width": 8, "heads": 2, "context": 8, "val_every": 5}
