"""A hub on the loopback address: the answers that huggingface_hub asks for, and every kind of trouble on request.

It serves model folders as repositories. Files of safetensors are recorded as the hub records large files (LFS, with
their SHA-256), the others by git's SHA-1; who asks for a large one is sent on to a second server, which stands for the
hub's storage and must see no token. `Hub.requests` is what was asked.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Request:
    """What was asked: the method, the path without the server, the Range header, and whether a token came along."""

    method: str
    path: str
    range: str | None
    token: str | None
    storage: bool


@dataclass
class Repo:
    """One repository. files: by name; recorded: what the hub says of a file, where that is not the truth."""

    files: dict[str, bytes]
    revisions: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})
    recorded: dict[str, dict[str, Any]] = field(default_factory=dict)
    token: str | None = None  # without it there is nothing to be seen
    gated: bool = False


# What happens to one request instead of the usual answer; True where the trouble has answered.
Trouble = Callable[["Handler"], bool]


class Hub:
    """repos by OWNER/NAME; troubles: what happens to requests whose path ends in a text, in turn, None for nothing."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.requests: list[Request] = []
        self.troubles: dict[str, list[Trouble | None]] = {}
        self.released = threading.Event()  # what holds a connection open waits for it
        self.held = threading.Event()  # a connection is being held open
        self.url = self.storage_url = ""

    def add(self, hub_id: str, folder: Path, leave_out: tuple[str, ...] = (), **more: Any) -> Repo:
        """Serve a folder; the references of the tests in it are left out."""
        files = {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in sorted(folder.rglob("*"))
            if file.is_file() and file.suffix != ".npz" and file.name not in leave_out
        }
        self.repos[hub_id] = Repo(files, **more)
        return self.repos[hub_id]

    def asked(self, ending: str = "") -> list[Request]:
        """The requests whose path ends in a text."""
        return [request for request in self.requests if request.path.endswith(ending)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub
    is_storage = False

    def do_GET(self) -> None:
        # A request to a proxy names the server too.
        address = urlsplit(self.path)
        path = unquote(address.path)
        request = Request("GET", path, self.headers["Range"], self.headers["Authorization"], self.is_storage)
        self.hub.requests.append(request)
        for ending, troubles in self.hub.troubles.items():
            if path.endswith(ending) and troubles:
                trouble = troubles.pop(0)
                if trouble is not None and trouble(self):
                    return
        if path.startswith("/api/models/"):
            self._listing(path.removeprefix("/api/models/"), parse_qs(address.query))
        else:
            self._file(path.removeprefix("/"))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the tests' output."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, code: str, message: str) -> None:
        self.answer(status, json.dumps({"error": message}).encode(), X_Error_Code=code, X_Error_Message=message)

    def _repo(self, hub_id: str) -> Repo | None:
        """The repository; None where the request was refused."""
        repo = self.hub.repos.get(hub_id)
        sent = self.headers["Authorization"]
        if repo is None or (repo.token is not None and sent != f"Bearer {repo.token}" and not repo.gated):
            # The hub does not tell a stranger whether there is such a model.
            self.refuse(401 if sent is None else 404, "RepoNotFound", "Repository not found")
            return None
        return repo

    def _listing(self, path: str, query: dict[str, list[str]]) -> None:
        hub_id, _, revision = path.partition("/revision/")
        repo = self._repo(hub_id)
        if repo is None:
            return
        commit = self._commit(repo, revision or "main")
        if commit is not None:
            wants_records = query.get("blobs", ["false"])[0].lower() == "true"
            siblings = [self._record(repo, name) if wants_records else {"rfilename": name} for name in repo.files]
            listing = {"id": hub_id, "modelId": hub_id, "sha": commit, "private": False, "gated": False, "tags": []}
            self.answer(200, json.dumps({**listing, "siblings": siblings}).encode(), Content_Type="application/json")

    def _commit(self, repo: Repo, revision: str) -> str | None:
        if revision in repo.revisions.values():
            return revision
        if revision not in repo.revisions:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return repo.revisions.get(revision)

    @staticmethod
    def _record(repo: Repo, name: str) -> dict[str, Any]:
        content = repo.files[name]
        found: dict[str, Any] = {"rfilename": name, "size": len(content)}
        if name.endswith((".safetensors", ".bin")):
            found["lfs"] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 130}
        found["blobId"] = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        return found | repo.recorded.get(name, {})

    def _file(self, path: str) -> None:
        hub_id, _, rest = path.partition("/resolve/")
        revision, _, name = rest.partition("/")
        repo = self.hub.repos[hub_id] if self.is_storage else self._repo(hub_id)
        if repo is None or self._commit(repo, revision) is None:
            return
        if repo.gated and not self.is_storage and self.headers["Authorization"] != f"Bearer {repo.token}":
            return self.refuse(403, "GatedRepo", f"Access to model {hub_id} is restricted")
        if name not in repo.files:
            return self.refuse(404, "EntryNotFound", "Entry not found")
        if name.endswith(".safetensors") and not self.is_storage:
            return self.answer(302, Location=f"{self.hub.storage_url}/{path}")
        self.send_content(repo.files[name])

    def send_content(self, content: bytes, *, stop: int | None = None, ranges: bool = True) -> None:
        """A file, or the rest of it; stop: break the connection off at this byte."""
        asked = (self.headers["Range"] or "").removeprefix("bytes=").removesuffix("-") if ranges else ""
        start = int(asked) if asked else 0
        if start >= len(content) and start:
            return self.answer(416, Content_Range=f"bytes */{len(content)}")
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content) - start))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(content[start:stop])
        if stop is not None:
            self.wfile.flush()
            self.close_connection = True


class StorageHandler(Handler):
    is_storage = True


@contextmanager
def serving() -> Iterator[Hub]:
    """The hub under one name of this machine, its storage under another."""
    hub = Hub()
    servers = []
    for name, kind in (("127.0.0.1", Handler), ("localhost", StorageHandler)):
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (kind,), {"hub": hub}))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append((server, f"http://{name}:{server.server_address[1]}"))
    hub.url, hub.storage_url = servers[0][1], servers[1][1]
    try:
        yield hub
    finally:
        hub.released.set()
        for server, _ in servers:
            server.shutdown()
            server.server_close()


def status(code: int, **headers: str) -> Trouble:
    """Answer with an error."""

    def trouble(handler: Handler) -> bool:
        handler.answer(code, b"not now", **headers)
        return True

    return trouble


def cut(content: bytes, stop: int) -> Trouble:
    """Break the connection off in the middle of a file."""

    def trouble(handler: Handler) -> bool:
        handler.send_content(content, stop=stop)
        return True

    return trouble


def hold(content: bytes, stop: int) -> Trouble:
    """Send the first part of a file, and then nothing."""

    def trouble(handler: Handler) -> bool:
        handler.send_content(content, stop=stop)
        handler.hub.held.set()
        handler.hub.released.wait()
        return True

    return trouble


def send(content: bytes, *, ranges: bool = True) -> Trouble:
    """Send something else, or the whole where a part is asked for."""

    def trouble(handler: Handler) -> bool:
        handler.send_content(content, ranges=ranges)
        return True

    return trouble
