"""Numbers in words that people read."""

from __future__ import annotations


def size(count: float) -> str:
    """Bytes: 512 B, 1.4 kB, 128 MB, 3.0 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
