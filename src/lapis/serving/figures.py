"""What a service has done: counts and latencies, for the report and for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from itertools import accumulate

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Figures:
    """Of requests for the model; pages such as health count nowhere."""

    def __init__(self) -> None:
        self.by_status: Counter[int] = Counter()
        self._latest: deque[float] = deque(maxlen=4096)
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def add(self, status: int, seconds: float) -> None:
        self.by_status[status] += 1
        self._latest.append(seconds)
        self._seconds += seconds
        self._buckets[bisect_left(BUCKETS, seconds)] += 1

    @property
    def requests(self) -> int:
        return self.by_status.total()

    @property
    def failures(self) -> int:
        return sum(count for status, count in self.by_status.items() if status >= 500)

    def latency_ms(self) -> dict[str, float | None]:
        ordered = sorted(self._latest)
        if not ordered:
            return {"p50": None, "p99": None}
        at = {name: ordered[min(len(ordered) - 1, int(len(ordered) * part))] for name, part in _PARTS.items()}
        return {name: round(seconds * 1000, 3) for name, seconds in at.items()}

    def prometheus(self, gauges: dict[str, float]) -> str:
        lines = ["# TYPE lapis_requests_total counter"]
        lines += [f'lapis_requests_total{{status="{each}"}} {count}' for each, count in sorted(self.by_status.items())]
        lines.append("# TYPE lapis_request_seconds histogram")
        counts = list(accumulate(self._buckets))
        below = zip(BUCKETS, counts, strict=False)  # the last count is of those above every limit
        lines += [f'lapis_request_seconds_bucket{{le="{limit:g}"}} {count}' for limit, count in below]
        lines.append(f'lapis_request_seconds_bucket{{le="+Inf"}} {counts[-1]}')
        lines.append(f"lapis_request_seconds_sum {self._seconds:.6f}")
        lines.append(f"lapis_request_seconds_count {counts[-1]}")
        for name, value in gauges.items():
            lines += [f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


_PARTS = {"p50": 0.5, "p99": 0.99}
