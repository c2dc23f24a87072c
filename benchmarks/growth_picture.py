"""Draws curves over sizes as SVG, by hand: the sizes go by powers of ten, the time is linear."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT = 900, 440
_LEFT, _TOP, _RIGHT, _BOTTOM = 60, 40, 290, 50
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f",
            "#bcbd22", "#393b79", "#637939")  # fmt: skip


class Curve(NamedTuple):
    name: str
    points: list[tuple[int, float]]  # size, milliseconds


def picture(curves: Sequence[Curve], sizes: Sequence[int], most: float) -> str:
    """`most` is drawn as the line that all should stay below."""
    top = max([most * 1.2, *(value for curve in curves for _, value in curve.points)])
    low, high = math.log10(sizes[0]), math.log10(sizes[-1])

    def x(size: float) -> float:
        return _LEFT + (math.log10(size) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM)

    right = _WIDTH - _RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        ' font-size="13">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">Milliseconds of CPU for a list (client and server), by how many runs '
        "there are</text>",
    ]
    step = next(each for each in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if top / each <= 8)
    for tick in range(0, int(top) + 1, step):
        parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end" fill="#555">{tick}</text>')
    for size in sizes:
        parts.append(f'<line x1="{x(size):.1f}" x2="{x(size):.1f}" y1="{_TOP}" y2="{y(0):.1f}" stroke="#f0f0f0"/>')
        parts.append(f'<text x="{x(size):.1f}" y="{y(0) + 20:.1f}" text-anchor="middle" fill="#555">{size:,}</text>')
    parts.append(
        f'<line x1="{_LEFT}" x2="{right}" y1="{y(most):.1f}" y2="{y(most):.1f}" stroke="#333" stroke-dasharray="6 4"/>'
        f'<text x="{_LEFT + 6}" y="{y(most) - 6:.1f}" fill="#333">asked for: at most {most:g} ms</text>'
    )
    ordered = sorted(curves, key=lambda curve: -curve.points[-1][1])
    for place, curve in enumerate(ordered):
        colour = _COLOURS[place % len(_COLOURS)]
        line = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in curve.points)
        dots = "".join(f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="2.5"/>' for s, v in curve.points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<g fill="{colour}">{dots}</g>')
        height = _TOP + 12 + place * 22
        parts.append(f'<rect x="{right + 18}" y="{height - 10}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{right + 36}" y="{height}">{escape(curve.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
