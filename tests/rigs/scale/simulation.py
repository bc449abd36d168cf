"""Simulation of one machine's samples in flight: connections, polls a second, and delays from ready to caller.

It follows the client's rules with the client's own constants, in virtual time, so that a fleet can be planned without
one: the machines of a fleet share nothing but the server.
"""

from __future__ import annotations

import heapq
import random
import statistics

import attrs

from tinkerwire._connection.poll_pace import MAX_POLLS_PER_S
from tinkerwire._polling.poller import FIRST_PAUSE_S, MAX_PAUSE_S
from tinkerwire._transport.backpressure import CONNECTIONS, Traffic

HOLD_S = 45.0
"""Time for which servers hold a poll without a result."""
ROUND_TRIP_S = 0.02
"""Time of a request to a server in another building."""


@attrs.frozen(kw_only=True)
class Load:
    """Load of one machine in the steady state."""

    connections: int
    """Most connections open at once."""
    requests_per_s: float
    """Submissions, polls and fetches."""
    samples_per_s: float
    p50_delay_s: float
    """Median of the time from a result that is ready at the server to the caller."""
    p99_delay_s: float


def simulate(mode: str, in_flight: int, shortest_s: float, longest_s: float, seconds: float) -> Load:
    """Keep a number of samples in flight for a time, and return the load.

    Args:
        mode: ``held`` if the server holds polls, ``fast`` if it returns 408 at once, ``batched`` if it offers batched
            polling.
        in_flight: samples in flight.
        shortest_s: least time of a sample.
        longest_s: most time of a sample; all times between are equally likely.
        seconds: virtual time, of which the first ``longest_s`` seconds do not count.
    """
    rng = random.Random(1)
    events: list[tuple[float, int, float, float]] = []  # time of the next poll's end, number, ready at, pause
    requests = finished = 0
    delays: list[float] = []
    numbers = iter(range(10**9))

    def submit(now: float) -> None:
        nonlocal requests
        ready_at = now + ROUND_TRIP_S + rng.uniform(shortest_s, longest_s)
        requests += now >= longest_s
        heapq.heappush(events, (now + ROUND_TRIP_S, next(numbers), ready_at, FIRST_PAUSE_S))

    for number in range(in_flight):
        submit(number * longest_s / in_flight)
    while events and events[0][0] < seconds:
        now, number, ready_at, pause = heapq.heappop(events)
        counts = now >= longest_s
        if mode == "fast" and now < ready_at:
            requests += counts
            wait = max(pause, in_flight / MAX_POLLS_PER_S)
            heapq.heappush(events, (now + ROUND_TRIP_S + wait, number, ready_at, min(pause * 2, MAX_PAUSE_S)))
            continue
        if mode == "held" and now + HOLD_S < ready_at:
            requests += counts
            heapq.heappush(events, (now + HOLD_S + ROUND_TRIP_S, number, ready_at, pause))
            continue
        # A held poll returns when the sample is ready; a batched poll does, and a fetch follows.
        arrival = max(now, ready_at) + ROUND_TRIP_S * (2 if mode == "batched" else 1)
        if counts:
            requests += 1
            finished += 1
            delays.append(arrival - ready_at)
        submit(arrival)
    delays.sort()
    span = seconds - longest_s
    sending = CONNECTIONS[Traffic.SAMPLING]
    polls = {"held": in_flight, "fast": MAX_POLLS_PER_S * ROUND_TRIP_S, "batched": 1 + finished / span * ROUND_TRIP_S}
    return Load(
        connections=round(sending + polls[mode]),
        requests_per_s=requests / span,
        samples_per_s=finished / span,
        p50_delay_s=statistics.median(delays),
        p99_delay_s=delays[int(len(delays) * 0.99)],
    )
