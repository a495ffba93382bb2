"""What the record counts about itself, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class Metrics:
    """One process's counters, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._children: dict[tuple[str, str, int], Histogram] = {}
        self.handles_not_honoured = Counter(
            "readyroom_handles_not_honoured",
            "Session headers that did not make the caller a session, by reason",
            ["reason"],
            registry=self.registry,
        )
        self.requests = Histogram(
            "readyroom_request_seconds",
            "Requests answered, by method, route and status",
            ["method", "route", "status"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.tools = Histogram(
            "readyroom_tool_seconds",
            "Tools called over MCP, by tool and outcome: ok, an error's code, or left",
            ["tool", "outcome"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.tokens_refused = Counter(
            "readyroom_tokens_refused", "Requests without a valid token", registry=self.registry
        )
        self.webhook_attempts = Counter(
            "readyroom_webhook_attempts",
            "Nudges posted to webhooks, by whether they were taken",
            ["outcome"],
            registry=self.registry,
        )

    def watch_nerve(self, dropped: Callable[[], int]) -> None:
        """Show how many nudges the nerve has dropped, as it counts them itself."""
        self.registry.register(_NudgesDropped(dropped))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. `route` is a template, never a path."""
        key = (method if method in _METHODS else "other", route, status)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self.requests.labels(key[0], route, str(status))
        child.observe(seconds)

    def tool_answered(self, tool: str, outcome: str, seconds: float) -> None:
        """Count a tool call."""
        self.tools.labels(tool, outcome).observe(seconds)

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self.registry)


class _NudgesDropped(Collector):
    def __init__(self, dropped: Callable[[], int]) -> None:
        self._dropped = dropped

    def collect(self) -> Iterator[Metric]:
        what = "Nudges dropped because too many rooms waited for the nerve"
        yield CounterMetricFamily("readyroom_nudges_dropped", what, value=self._dropped())
