"""Who is connected: a desk for each connection, kept while it lives and left when it ends.

Over stdio (and in memory) the server's own life is the connection's. Over HTTP a session is one: it lives while a
request of it is under way or its stream is open; without a stream, until it is closed or was idle for long. What has
no session has no connection either: its claims stand for their lease.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mcp.server.session import ServerSession

from headway.desk import GRACE, RENEWED, Desk
from headway.errors import TryLater
from headway.surfaces.mcp.tickets import Tickets

STREAM_LOST = 5.0
"""How long, in seconds, a session without its stream may be silent before it counts as gone."""
IDLE = 1800.0
MOST_CALLS = 16
"""How many calls of one connection may be under way at once."""


class Seat:
    """One connection and its desk."""

    def __init__(self, desk: Desk, name: str = "") -> None:
        self.desk = desk
        self.name = name
        self.calls = 0
        self.requests = 0
        self.had_stream = False
        self.last = time.monotonic()
        self.renewed = time.monotonic()
        self.away = False
        self.subscribed: dict[str, ServerSession] = {}
        """Resources that it asked to be told of, and by which way."""


class Room:
    """All connections of one server to one project."""

    def __init__(self, desk: Callable[[str, str], Desk], tickets: Tickets, *, shared: bool) -> None:
        self.tickets = tickets
        self._make = desk
        self._shared = shared
        self._seats: dict[str, Seat] = {}
        self._mutex = threading.Lock()
        self._over = threading.Event()
        self._own = "" if shared else os.urandom(6).hex()
        self._strangers = Seat(desk("", ""))
        self._left: list[tuple[float, Desk]] = []

    def __enter__(self) -> Room:
        threading.Thread(target=self._keep, name="headway-claims", daemon=True).start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._over.set()
        for seat in list(self._seats.values()):
            seat.desk.leave()

    def seat(self, session: str | None, name: str) -> Seat:
        """The seat of a connection; of none, one for this call alone."""
        key = (session or "") if self._shared else self._own
        if not key:
            return Seat(self._make("", name))
        with self._mutex:
            found = self._seats.get(key)
            if found is None:
                found = self._seats[key] = Seat(self._make(key, name), name)
            elif name and not found.name:  # a session is there before anybody says who it is
                found.name, found.desk.by = name, self._make("", name).by
            return found

    def seats(self) -> list[Seat]:
        """Those of connections that are there."""
        with self._mutex:
            return [seat for seat in self._seats.values() if not seat.away]

    @contextmanager
    def call(self, seat: Seat) -> Iterator[None]:
        """A call under way; a flood of them is refused."""
        seat = seat if seat in self._seats.values() else self._strangers
        with self._mutex:
            if seat.calls >= MOST_CALLS:
                raise TryLater(
                    f"{seat.calls} calls of this connection are under way",
                    hint="wait for an answer before the next call",
                    code="mcp.flood",
                )
            seat.calls += 1
        try:
            yield
        finally:
            with self._mutex:
                seat.calls -= 1

    # Over HTTP: what is seen of sessions from outside.

    def arrives(self, session: str, *, stream: bool) -> None:
        """A request of a session begins; whoever was thought gone is back, with what nobody took over."""
        with self._mutex:
            seat = self._seats.get(session)
            if seat is None:
                return
            seat.requests += 1
            seat.had_stream = seat.had_stream or stream
            back, seat.away = seat.away, False
        if back:
            seat.desk.renew()

    def departs(self, session: str, *, closed: bool) -> None:
        """A request of a session ends; `closed`: with it the session."""
        with self._mutex:
            seat = self._seats.get(session)
            if seat is None:
                return
            seat.requests = max(seat.requests - 1, 0)
            seat.last = time.monotonic()
            if closed:
                del self._seats[session]
        if closed:
            self._leave(seat)

    def opened(self, session: str, name: str) -> None:
        """A session begins."""
        self.seat(session, name).last = time.monotonic()

    def _keep(self) -> None:
        """Renew what is claimed by those who are there; leave what was claimed by those who are not."""
        while not self._over.wait(1.0):
            now = time.monotonic()
            for when, desk in list(self._left):
                if when <= now:
                    self._left.remove((when, desk))
                    desk.sweep()
            for seat in list(self._seats.values()):
                if self._shared and not seat.away and self._is_gone(seat, now):
                    seat.away = True
                    self._leave(seat)
                elif not seat.away and now - seat.renewed >= RENEWED:
                    seat.renewed = now
                    seat.desk.renew()

    def _leave(self, seat: Seat) -> None:
        """Its claims stand a little longer; this server is still there to give them back then."""
        seat.desk.leave()
        self._left.append((time.monotonic() + GRACE + 1, seat.desk))

    def _is_gone(self, seat: Seat, now: float) -> bool:
        if seat.requests or seat.calls:
            return False
        return now - seat.last > (STREAM_LOST if seat.had_stream else IDLE)
