"""Thins a series to what a chart can show, and loses no spike."""

from __future__ import annotations

from collections.abc import Sequence


def thinned(numbers: Sequence[float], most: int) -> list[int]:
    """Which of the numbers to draw, at most `most`: the first and the last, and of every stretch lowest and highest."""
    if len(numbers) <= most:
        return list(range(len(numbers)))
    stretches = max(1, (most - 2) // 2)
    width = len(numbers) / stretches
    kept = {0, len(numbers) - 1}
    for stretch in range(stretches):
        start, end = int(stretch * width), min(len(numbers), int((stretch + 1) * width))
        part = numbers[start:end]
        if part:
            kept.add(start + part.index(min(part)))
            kept.add(start + part.index(max(part)))
    return sorted(kept)
