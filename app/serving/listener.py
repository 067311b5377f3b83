"""The listening socket: who may ask, how much they may send, and HTTP around the endpoints.

This is the one module of the program that opens a socket for others, and only `inkling serve` does. It listens on the
loopback interface unless it is told otherwise, and connects to nobody.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import os
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from app.serving.endpoints import GETS, POSTS, Refusal, described
from app.serving.service import Service
from engine import EngineError

log = logging.getLogger(__name__)

MOST_BODY_BYTES = 32 << 20
MOST_CONNECTIONS = 64
QUIET_SECONDS = 30.0  # a connection that says nothing for so long is closed
END_SECONDS = 5.0  # what is being answered when the server ends has so long

OF_THE_PORT = (errno.EADDRINUSE, errno.EACCES)  # what else keeps a socket from listening is the host's


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own loopback interface."""
    if host.casefold() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Listener(ThreadingHTTPServer):
    """A server for one Service. Use `serve_forever`, and `end` from the same thread afterwards."""

    daemon_threads, block_on_close = True, False
    request_queue_size = MOST_CONNECTIONS
    # On Windows it would let another program take the same port; on the others, be started again at once.
    allow_reuse_address = os.name == "posix"

    def __init__(self, service: Service, host: str, port: int):
        self.service, self.host = service, host
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._busy, self._idle = 0, threading.Condition()
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError, UnicodeError) as error:  # the last one for what cannot be a host's name
            why = getattr(error, "strerror", None) or error
            of_port = isinstance(error, OverflowError) or getattr(error, "errno", None) in OF_THE_PORT
            option = "--port" if of_port else "--host"
            raise EngineError(f"Nothing can listen on {host}:{port} ({why}); choose another {option}.") from error

    def server_bind(self) -> None:
        """Bind without asking a name server what this machine is called, as the class above would."""
        super(HTTPServer, self).server_bind()
        self.server_name, self.server_port = self.host, self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.server_port}"

    def is_ours(self, host_header: str | None) -> bool:
        """Whether a Host header names this server.

        A page on the web can have its own name lead to this machine and then ask as if it were at home; the name in
        the header gives it away. A number is no name.
        """
        try:
            parts = urlsplit(f"//{host_header or ''}")
            name, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        if port not in (self.server_port, None) or parts.path or parts.query:
            return False
        if is_loopback(name) or name.casefold() == self.host.casefold():
            return True
        return not is_loopback(self.host) and _is_address(name)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless there are too many: then it is closed."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The thread of one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is nobody's fault; anything else is told before it comes here."""
        log.info("a connection broke", exc_info=True)

    def begin(self) -> None:
        """A request is being answered."""
        with self._idle:
            self._busy += 1

    def finish(self) -> None:
        """It was answered."""
        with self._idle:
            self._busy -= 1
            self._idle.notify_all()

    def end(self) -> None:
        """Stop listening, and let those be answered who have asked."""
        self.server_close()
        with self._idle:
            self._idle.wait_for(lambda: self._busy == 0, END_SECONDS)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Listener
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "inkling", ""
    timeout = QUIET_SECONDS
    # An answer in two small packets would wait for the first one's acknowledgement: 40 ms.
    wbufsize, disable_nagle_algorithm = -1, True

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_HEAD(self) -> None:
        """As GET, without the body."""
        self._answer("HEAD")

    def _other(self) -> None:
        """What no path takes: refused as every other mistake is, and counted."""
        self._answer(self.command)

    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _other

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the class above calls of a method that it does not know, and of what is no request at all."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._other()
            return
        self.close_connection = True
        self._send(code, described("", Refusal(code, message or HTTPStatus(code).phrase)), "")
        self.server.service.metrics.answered("other", code, 0.0)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is printed: what is asked is nobody else's business."""

    def _answer(self, method: str) -> None:
        begun, path = time.perf_counter(), urlsplit(self.path).path
        status = 499  # what is noted of a client that has gone
        self.server.begin()
        try:
            try:
                found, content = 200, self._content(method, path)
            except Refusal as refusal:
                found, content = refusal.status, described(path, refusal)
            except EngineError as error:
                found, content = 500, described(path, Refusal(500, str(error)))
            except OSError:
                raise
            except Exception:
                log.exception("a request to %s failed", path)
                found, content = 500, described(path, Refusal(500, "Something went wrong; the log says what."))
            self._send(found, content, path)
            status = found
        finally:
            known = path if path in POSTS or path in GETS else "other"
            self.server.service.metrics.answered(known, status, time.perf_counter() - begun)
            self.server.finish()

    def _content(self, method: str, path: str) -> Any:
        """What is sent back. Raises Refusal; what of the request was not read by then ends the connection."""
        last, self.close_connection = self.close_connection, True
        self._check_caller()
        allowed = _methods(path)
        if not allowed:
            raise Refusal(404, f"Here are {', '.join([*POSTS, *GETS])}.")
        if method not in allowed:
            raise Refusal(405, f"{path} does not take {method}.")
        if path in GETS:
            self.close_connection = last or "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
            return GETS[path](self.server.service)
        if self.headers.get_content_type() != "application/json":
            raise Refusal(415, "The Content-Type must be application/json.")
        body = self._body()
        self.close_connection = last
        try:
            values = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Refusal(400, f"The body is not JSON ({error}).") from error
        if not isinstance(values, dict):
            raise Refusal(400, "The body is not a JSON object.")
        return POSTS[path](self.server.service, values)

    def _check_caller(self) -> None:
        if not self.server.is_ours(self.headers.get("Host")):
            raise Refusal(403, "The Host header does not name this server.")
        origin = self.headers.get("Origin")
        if origin is not None and not (origin.startswith("http://") and self.server.is_ours(origin[7:])):
            raise Refusal(403, "Pages of other sites may not ask here.")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdecimal() and len(length) < 19):
            raise Refusal(411, "The Content-Length must be given.")
        if int(length) > MOST_BODY_BYTES:
            raise Refusal(413, f"The body has {length} bytes; {MOST_BODY_BYTES} can be.")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionError("the body ended early")
        return body

    def _send(self, status: int, content: Any, path: str) -> None:
        text = isinstance(content, str)
        data = (content if text else json.dumps(content, separators=(",", ":"))).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8" if text else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if status == 405:
            self.send_header("Allow", ", ".join(_methods(path)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _methods(path: str) -> tuple[str, ...]:
    """What a path takes; nothing where it is none of ours."""
    if path in GETS:
        return "GET", "HEAD"
    return ("POST",) if path in POSTS else ()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
