"""Pages for the browser of this machine, and news for them: `PageServer`.

It listens on 127.0.0.1 and nowhere else. Every request has to carry the token of the address that
was printed, and a host name of this machine, so that no other user and no page of another site
reads or steers anything: otherwise 403. There is one page, one stream of events, and, where a
dashboard has them, data by name and a control; every other path is 404.
"""

from __future__ import annotations

import errno
import hmac
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

HOST = "127.0.0.1"
ALIVE = 15.0  # seconds between signs of life of a stream
REMEMBERED = 1000  # events of a stream, at least
LONGEST = 1000  # bytes of a request's body


Text = str | Callable[[], str]


class Stream:
    """Events in order, each a name and text; whoever listens gets those from where it asks."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Text]] = []
        self._forgotten = 0  # of the oldest, where there are too many
        self._lock = threading.RLock()  # taken as itself, which no Ctrl-C interrupts inside
        self._news = threading.Condition(self._lock)
        self.closed = False

    def __len__(self) -> int:
        return self._forgotten + len(self._events)

    def publish(self, name: str, text: Text = "") -> None:
        """Tell all who listen, now and later. The text is one line; one that is a function is
        made when somebody is told."""
        with self._lock:
            self._events.append((name, text))
            if len(self._events) > 2 * REMEMBERED:
                self._forgotten += REMEMBERED
                del self._events[:REMEMBERED]
            self._news.notify_all()

    def close(self) -> None:
        """There will be no more."""
        with self._lock:
            self.closed = True
            self._news.notify_all()

    def take(self, start: int, timeout: float) -> tuple[int, list[tuple[str, Text]]]:
        """The events from number `start` on, after waiting for one if there is none, and the number
        of the first: a later one where those before are forgotten."""
        with self._lock:
            self._news.wait_for(lambda: len(self) > start or self.closed, timeout)
            first = max(start, self._forgotten)
            return first, self._events[first - self._forgotten :]


class PageServer:
    """Serves what `page()` returns at `url`, to those who know the token in it.

    `port` is a wish: where it is taken, the system picks another. `control` is called with the text
    of a request to control, and returns whether it understood. `data` gives JSON by name, or None
    for a name that it does not know. Close it with `close()`.
    """

    def __init__(
        self,
        page: Callable[[], str],
        port: int = 0,
        control: Callable[[str], bool] | None = None,
        data: Callable[[str], str | None] | None = None,
    ) -> None:
        self.page = page
        self.data = data
        self.control = control
        self.stream = Stream()
        self.token = secrets.token_urlsafe(24)
        self._server = _listening(port)
        self._server.owner = self
        self.port: int = self._server.server_address[1]
        # Closing waits for one look of the thread at whether it shall end.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address, with the token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def close(self) -> None:
        """Stop serving."""
        self.stream.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False  # so that a port that somebody serves on counts as taken
    owner: PageServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle is no news."""


def _listening(port: int) -> _Server:
    try:
        return _Server((HOST, port), _Handler)
    except OSError as error:
        if port == 0 or error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        return _Server((HOST, 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "retrograd"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        request = urlsplit(self.path)
        if not self._allowed(request.query):
            self._answer(403, "text/plain", b"this needs the address that was printed")
        elif request.path == "/":
            try:
                self._answer(200, "text/html", self.server.owner.page().encode())
            except OSError as error:
                self._answer(500, "text/plain", str(error).encode())
        elif request.path == "/events":
            self._events(request.query)
        elif request.path == "/data" and self.server.owner.data is not None:
            found = self.server.owner.data(parse_qs(request.query).get("name", [""])[0])
            if found is None:
                self._answer(404, "text/plain", b"there is nothing of this name")
            else:
                self._answer(200, "application/json", found.encode())
        else:
            self._answer(404, "text/plain", b"there is nothing here")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        request, control = urlsplit(self.path), self.server.owner.control
        length = self.headers.get("Content-Length", "0")
        size = int(length) if length.isdecimal() else LONGEST + 1
        self.close_connection = True
        if not self._allowed(request.query) or not self._same_origin():
            self._answer(403, "text/plain", b"this needs the address that was printed")
        elif request.path != "/control" or control is None:
            self._answer(404, "text/plain", b"there is nothing here")
        elif size > LONGEST:
            self._answer(413, "text/plain", b"too long")
        else:
            understood = control(self.rfile.read(size).decode(errors="replace"))
            self._answer(204 if understood else 400, "text/plain", b"")

    def _allowed(self, query: str) -> bool:
        """Whether the token is right, and the host is this one: a page of another site whose name
        was made to mean 127.0.0.1 says another."""
        owner = self.server.owner
        given = parse_qs(query).get("token", [""])[0]
        known = hmac.compare_digest(given.encode(errors="replace"), owner.token.encode())
        host = self.headers.get("Host", "")
        return known and host in (f"{HOST}:{owner.port}", f"localhost:{owner.port}")

    def _same_origin(self) -> bool:
        origin = self.headers.get("Origin")
        port = self.server.owner.port
        return origin in (None, f"http://{HOST}:{port}", f"http://localhost:{port}")

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self._headers(kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def _headers(self, kind: str) -> None:
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")

    def _events(self, query: str) -> None:
        """A stream of server-sent events, until the browser or the server ends it."""
        stream = self.server.owner.stream
        asked = parse_qs(query).get("from", [str(len(stream))])[0]
        resumed = self.headers.get("Last-Event-ID", "")
        at = int(resumed) if resumed.isdecimal() else int(asked) if asked.isdecimal() else 0
        self.close_connection = True
        self.send_response(200)
        self._headers("text/event-stream")
        self.end_headers()
        try:
            while True:
                wanted, (at, news) = at, stream.take(at, ALIVE)
                if at > wanted:  # too slow: what is between is forgotten
                    self.wfile.write(b"event: behind\ndata: \n\n")
                for name, text in news:
                    at += 1
                    told = text if isinstance(text, str) else text()
                    self.wfile.write(f"id: {at}\nevent: {name}\ndata: {told}\n\n".encode())
                if not news:
                    self.wfile.write(b": still here\n\n")
                self.wfile.flush()
                if stream.closed and at >= len(stream):
                    self.wfile.write(b"event: bye\ndata: \n\n")
                    return
        except (BrokenPipeError, ConnectionResetError):
            return

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal belongs to the user."""
