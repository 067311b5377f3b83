"""The Hugging Face hub: the one module of the program that opens network connections, and only `pull` loads it.

What goes over the wire are requests for one model's listing and files. Everything is checked against the hub's own
record of it: the size of each file, and its SHA-256 (git's SHA-1 for small files). Files are received by hand and not
through `hf_hub_download`, which begins anew after a pull that was broken off
(https://github.com/huggingface/huggingface_hub/pull/4306): here what has arrived stays and the rest is asked for, in
plain HTTP. HF_ENDPOINT, HF_TOKEN and the token file, the variables of proxies and HF_HUB_DOWNLOAD_TIMEOUT count as they
do for every program that uses the hub.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import filelock
import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import hf_hub_url
from huggingface_hub.hf_api import HfApi, RepoSibling
from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

from engine.errors import HubError

T = TypeVar("T")
Received = Callable[[int], None]  # bytes of a file that are here, after each piece

PART = ".part"  # what the name of a file ends in that is not whole
CHUNK_BYTES = 1 << 18

# Seconds to wait before each further try of what may pass by itself, or what the server asks for, but not longer than:
WAITS_S = (1.0, 2.0, 4.0, 8.0)
LONGEST_WAIT_S = 60.0
PASSING = (408, 425, 429, 500, 502, 503, 504)
RESUME_IMPOSSIBLE = 416
# A connection that breaks again and again may do so for as long as it brings this much each time.
PROGRESS_BYTES = 1 << 20


@dataclass(frozen=True)
class RemoteFile:
    """A file as the hub records it. sha256: of a large file, else None. sha1: of a small one as git names it."""

    name: str
    size: int
    sha256: str | None
    sha1: str | None


@dataclass(frozen=True)
class Repository:
    """A model at one commit; files by name."""

    hub_id: str
    commit: str
    files: dict[str, RemoteFile]


class Hub:
    """A connection to the hub that HF_ENDPOINT names, else huggingface.co."""

    def __init__(self) -> None:
        if constants.is_offline_mode():
            raise HubError("HF_HUB_OFFLINE is set, so nothing is asked of the network; unset it to pull a model.")
        constants.HF_HUB_DISABLE_TELEMETRY = True
        self._endpoint = constants.ENDPOINT
        self.host = urlsplit(self._endpoint).hostname or ""
        if urlsplit(self._endpoint).scheme not in ("http", "https") or not self.host:
            raise HubError(f"HF_ENDPOINT is {self._endpoint!r}, not the address of a hub (https://...).")
        self._timeout_s = constants.HF_HUB_DOWNLOAD_TIMEOUT

    def repository(self, hub_id: str, revision: str | None) -> Repository:
        """What a model's repository holds at a revision, None for its main branch. Raises HubError."""
        api = HfApi(endpoint=self._endpoint, library_name="inkling", library_version=_version())

        def ask() -> Repository:
            info = api.model_info(hub_id, revision=revision, files_metadata=True, timeout=self._timeout_s)
            if not isinstance(info.sha, str) or len(info.sha) != 40:
                raise ValueError("no commit")
            return Repository(hub_id, info.sha, {each.rfilename: _remote(each) for each in info.siblings or ()})

        try:
            return self._patiently(ask, hub_id, revision)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise HubError(
                f"{self.host} gives no listing of {hub_id} as a hub does; a proxy or a login page may be in between."
            ) from error

    def fetch(self, repository: Repository, name: str, target: Path, received: Received) -> None:
        """Receive a file and check it; `target` appears whole or not at all, and a part stays for the next try.

        received: called with the bytes that are here. Raises HubError.
        """
        file = repository.files[name]
        part = target.with_name(target.name + PART)
        part.parent.mkdir(parents=True, exist_ok=True)
        resumed = part.is_file()
        self._receive_all(repository, file, part, received)
        wrong = _difference(file, part)
        if wrong and resumed:  # what was there already may have been of something else
            part.unlink()
            self._receive_all(repository, file, part, received)
            wrong = _difference(file, part)
        if wrong:
            part.unlink()
            raise HubError(f"{name} of {repository.hub_id} arrived damaged: {wrong}. It was thrown away; pull again.")
        os.replace(part, target)

    @contextmanager
    def alone(self, lock: Path) -> Iterator[None]:
        """Keep a second pull of the same model out; HubError where one is at work."""
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            with filelock.FileLock(lock, timeout=0):
                yield
        except filelock.Timeout as error:
            raise HubError("Another `inkling models pull` is fetching this model already.") from error

    def _receive_all(self, repository: Repository, file: RemoteFile, part: Path, received: Received) -> None:
        """Let the part grow until it has the file's size, over as many connections as it takes."""
        while True:
            before = _size(part)
            try:
                return self._patiently(
                    lambda: self._receive(repository, file, part, received), repository.hub_id, repository.commit
                )
            except HubError:
                if _size(part) - before < PROGRESS_BYTES:
                    raise

    def _receive(self, repository: Repository, file: RemoteFile, part: Path, received: Received) -> None:
        """One connection's worth."""
        have = _size(part)
        if have > file.size:
            part.unlink()
            have = 0
        if have == file.size:
            part.touch()
            return received(have)
        url = hf_hub_url(repository.hub_id, file.name, revision=repository.commit, endpoint=self._endpoint)
        # Compressed, neither would the size be the file's, nor could a part be continued.
        wanted = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
        headers = build_hf_headers(library_name="inkling", library_version=_version(), headers=wanted)
        # The client leaves the token behind when it is sent on to another host.
        with get_session().stream("GET", url, headers=headers, timeout=self._timeout_s) as response:
            if have and response.status_code == RESUME_IMPOSSIBLE:
                part.unlink()
            hf_raise_for_status(response)
            if have and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                have = 0  # the server begins anew
            with part.open("r+b" if have else "wb") as out:
                out.seek(have)
                for chunk in response.iter_bytes():
                    have += len(chunk)
                    if have > file.size:
                        raise HubError(f"{self.host} sends more of {file.name} than the {file.size:,} bytes it has.")
                    out.write(chunk)
                    received(have)
        if have < file.size:
            raise httpx2.RemoteProtocolError(f"the connection ended at byte {have:,} of {file.size:,}")

    def _patiently(self, attempt: Callable[[], T], hub_id: str, revision: str | None) -> T:
        """Try again what may pass by itself; known trouble becomes a HubError."""
        waits = iter(WAITS_S)
        while True:
            try:
                return attempt()
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ImportError, UnicodeEncodeError) as error:
                wait = next(waits, None) if _may_pass(error) else None
                if wait is None:
                    raise HubError(self._sentence(error, hub_id, revision)) from error
                time.sleep(_asked_wait(error, wait))

    def _sentence(self, error: Exception, hub_id: str, revision: str | None) -> str:
        """What went wrong and what to do, in one sentence."""
        if isinstance(error, GatedRepoError):
            return (
                f"{hub_id} is given only to those who accept its terms: do so at {self._endpoint}/{hub_id}, then set "
                f"HF_TOKEN to a token of that account ({self._endpoint}/settings/tokens)."
            )
        if isinstance(error, RevisionNotFoundError):
            return f"{hub_id} has no revision {revision!r}."
        if isinstance(error, EntryNotFoundError):
            return f"{self.host} lists a file of {hub_id} and does not have it; try again later."
        if isinstance(error, HfHubHTTPError):
            return self._of_status(error, hub_id)
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
            return (
                f"{self.host} cannot be reached ({_reason(error)}); check the connection, and HTTPS_PROXY where the "
                f"network has a proxy."
            )
        if isinstance(error, httpx2.TimeoutException):
            return f"{self.host} sent nothing for {self._timeout_s} seconds; what has arrived is kept, so pull again."
        if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL):
            return f"The connection to {self.host} broke ({_reason(error)}); what has arrived is kept, so pull again."
        if isinstance(error, ImportError):
            if "socks" in str(error).lower():
                return "The environment names a proxy of SOCKS, which this program cannot speak to; name one of http."
            return f"The hub's client is not whole ({_reason(error)}); install Inkling again."
        if isinstance(error, UnicodeEncodeError):
            return "HF_TOKEN, or the token file, holds letters that are in no token."
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return f"The disk is full; what has arrived of {hub_id} is kept, so make room and pull again."
        return f"{hub_id} cannot be written ({_reason(error)})."

    def _of_status(self, error: HfHubHTTPError, hub_id: str) -> str:
        status = error.response.status_code
        if isinstance(error, RepositoryNotFoundError) or status in (401, 404):
            sent = "authorization" in error.response.request.headers
            private = "the token that was sent may not read it" if sent else "it is private and needs HF_TOKEN"
            return f"{self.host} has no model {hub_id} ({status}): check the name, or {private}."
        if status == 403:
            return f"{self.host} does not let {hub_id} be read (403); HF_TOKEN must be a token that may."
        if status == 429:
            return f"{self.host} is asked too often (429); wait a while, or set HF_TOKEN to a token of yours."
        return f"{self.host} answers with an error ({status}); what has arrived is kept, so try again later."


def _remote(each: RepoSibling) -> RemoteFile:
    if type(each.size) is not int or each.size < 0:
        raise ValueError("no size")
    return RemoteFile(each.rfilename, each.size, None if each.lfs is None else each.lfs.sha256, each.blob_id)


def _may_pass(error: Exception) -> bool:
    """Whether the same request may well succeed in a while."""
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in (*PASSING, RESUME_IMPOSSIBLE)
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError | httpx2.UnsupportedProtocol):
        return False
    return isinstance(error, httpx2.TransportError)


def _asked_wait(error: Exception, wait_s: float) -> float:
    """The seconds that a busy server asks to be left alone, else `wait_s`."""
    asked = error.response.headers.get("Retry-After", "") if isinstance(error, HfHubHTTPError) else ""
    return min(float(asked), LONGEST_WAIT_S) if asked.isdecimal() else wait_s


def _difference(file: RemoteFile, path: Path) -> str:
    """What is wrong with a file that has arrived, "" where nothing is."""
    if file.sha256 is not None:
        name, wanted, digest = "SHA-256", file.sha256, hashlib.sha256()
    elif file.sha1 is not None:
        # How git names a blob: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
        digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        name, wanted = "git's SHA-1", file.sha1
    else:
        return f"{file.name} has no hash to be checked by"
    with path.open("rb") as content:
        while chunk := content.read(CHUNK_BYTES):
            digest.update(chunk)
    return "" if digest.hexdigest() == wanted else f"its {name} is {digest.hexdigest()}, not {wanted}"


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _reason(error: Exception) -> str:
    """The library's or the system's own words, on one line."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return " ".join(text.split())[:200]


def _version() -> str:
    try:
        return version("inkling-search")
    except PackageNotFoundError:
        return "0"
