"""Opening index.db: creation, versions, and the settings that every connection needs.

Durability: WAL with synchronous=NORMAL. A killed process loses no committed transaction; only a power cut may lose the
last ones, never the consistency of the file. All that could be lost so is found again by the next scan, because
index.db is a cache of the disk, and NORMAL spares an fsync for each of the many small commits.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import apsw
import sqlite_vec

from indexer.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError

APPLICATION_ID = 0x496E6B6C  # "Inkl"
SCHEMA_VERSION = 1
PAGE_SIZE_BYTES = 8192
BUSY_TIMEOUT_MS = 10_000
CACHE_KIB = 64 * 1024
READER_MAP_BYTES = 8 << 30
NETWORK_FILESYSTEMS = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "afs",
        "ceph",
        "9p",
        "ncpfs",
        "glusterfs",
        "lustre",
        "beegfs",
    }
    | {"fuse.sshfs", "fuse.glusterfs", "fuse.rclone", "fuse.davfs2", "fuse.s3fs", "davfs", "gpfs", "ocfs2", "virtiofs"}
)
log = logging.getLogger(__name__)


def index_path(data_dir: Path) -> Path:
    """Where the index of a data folder lies."""
    return data_dir / "index.db"


def open_writer(data_dir: Path, *, mounts: Path = Path("/proc/mounts")) -> apsw.Connection:
    """The one connection that writes; creates the folder and the index where they are missing.

    Raises StoreVersionError, StoreBusyError, StoreDamagedError or StoreError, each with a sentence.
    """
    path = _encodable(index_path(data_dir))
    filesystem = network_filesystem(data_dir, mounts)
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The index holds the text of private files; its WAL takes over the mode.
        path.touch(mode=0o600)
        connection = apsw.Connection(os.fspath(path))
    except (OSError, apsw.Error) as error:
        raise StoreError(f"The index {path} cannot be opened: {error}.") from error
    try:
        _prepare(connection)
        if _is_empty(connection):
            _create(connection)
        _check_version(connection, path)
        if filesystem:
            log.warning(
                "The data folder %s lies on a network file system (%s): searches wait while the index is written. "
                "Choose a folder on a local disk with --data-dir.",
                data_dir,
                filesystem,
            )
        connection.execute(f"PRAGMA journal_mode = {'DELETE' if filesystem else 'WAL'}").fetchall()
        for pragma in ("synchronous = NORMAL", "secure_delete = ON", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()  # one by one: an answer not read stops what follows
        connection.execute("PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 67108864").fetchall()
    except apsw.Error as error:
        connection.close()
        raise explain(error, path) from error
    except StoreError:
        connection.close()
        raise
    return connection


def open_reader(data_dir: Path) -> apsw.Connection:
    """A connection that cannot write, also where the folder is read-only.

    Raises StoreError where there is no index yet, and the errors of `open_writer`.
    """
    path = _encodable(index_path(data_dir))
    if not path.exists():
        raise StoreError(
            f"There is no index in {data_dir} yet: add a folder first, for example with 'inkling index FOLDER'."
        )
    try:
        connection = _connect_reader(path)
    except OSError as error:
        raise StoreError(f"The index {path} cannot be opened: {error.strerror}.") from error
    except apsw.Error as error:
        raise explain(error, path) from error
    try:
        _prepare(connection)
        if _is_empty(connection):
            raise StoreError(f"The index {path} is empty: the indexer has not created it yet.")
        _check_version(connection, path)
        # A search touches a thousand scattered pages: mapped, they are not copied one by one.
        connection.execute(f"PRAGMA mmap_size = {READER_MAP_BYTES}").fetchall()
        connection.execute("PRAGMA query_only = ON")
    except apsw.Error as error:
        connection.close()
        raise explain(error, path) from error
    except StoreError:
        connection.close()
        raise
    return connection


def _connect_reader(path: Path) -> apsw.Connection:
    """Opened read-write below where that is possible, because a WAL left by a killed writer needs it. In a folder that
    takes no files, an index without a WAL can only be read as one that nobody writes."""
    wal = path.with_name(path.name + "-wal")
    if os.access(path.parent, os.W_OK) or (wal.exists() and wal.stat().st_size):
        return apsw.Connection(os.fspath(path), flags=apsw.SQLITE_OPEN_READWRITE)
    address = path.absolute().as_uri() + "?mode=ro&immutable=1"
    return apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _encodable(path: Path) -> Path:
    """Raises StoreError for a name that SQLite cannot take: its file names are UTF-8."""
    try:
        os.fspath(path).encode("utf-8")
    except UnicodeEncodeError:
        name = os.fspath(path.parent).encode("utf-8", "backslashreplace").decode("utf-8")
        raise StoreError(
            f"The name of the data folder {name} is not valid UTF-8, so no index can lie in it; choose another one."
        ) from None
    return path


def explain(error: apsw.Error, path: Path) -> StoreError:
    """The sentence for an error that SQLite reports about the file itself."""
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusyError(f"The index {path} is in use by another process; try again when it is done.")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreDamagedError(
            f"The index {path} is damaged. Delete it and index again: that costs time, but loses none of your files."
        )
    if _lacks_table(error):
        return StoreDamagedError(
            f"The index {path} lacks a part ({error}). Delete it and index again: that costs time, but loses none of "
            "your files."
        )
    if isinstance(error, apsw.ReadOnlyError):
        return StoreError(f"The index {path} cannot be written: it, its folder or its disk is read-only.")
    if isinstance(error, apsw.FullError):
        return StoreError(f"The disk with the index {path} is full; free some space and try again.")
    return StoreError(f"The index {path} cannot be used: {error}.")


def is_bug(error: apsw.Error) -> bool:
    """Whether the fault is in our own SQL, and not in the file: such an error stays what it is."""
    bugs = (apsw.SQLError, apsw.ConstraintError, apsw.MisuseError, apsw.MismatchError, apsw.RangeError)
    return isinstance(error, bugs) and not _lacks_table(error)


def _lacks_table(error: apsw.Error) -> bool:
    return isinstance(error, apsw.SQLError) and "no such table" in str(error)


def network_filesystem(folder: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """The type of the network file system that `folder` lies on, '' for a local one or where the system cannot say."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""  # no such list on this system
    target = os.path.realpath(folder)
    best, kind = "", ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind if kind in NETWORK_FILESYSTEMS else ""


def _prepare(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}; PRAGMA temp_store = MEMORY")


def _is_empty(connection: apsw.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_schema").get


def _create(connection: apsw.Connection) -> None:
    schema = Path(__file__).with_name("schema.sql").read_text("utf-8")
    connection.execute(
        f"PRAGMA page_size = {PAGE_SIZE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA secure_delete = ON"
    )
    connection.execute("BEGIN EXCLUSIVE")
    if _is_empty(connection):  # another process may have been first
        connection.execute(schema)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _check_version(connection: apsw.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").get
    version = connection.execute("PRAGMA user_version").get
    if application != APPLICATION_ID:
        raise StoreError(f"The file {path} is not an Inkling index; move it away or choose another data folder.")
    if version > SCHEMA_VERSION:
        raise StoreVersionError(
            f"The index {path} was written by a newer Inkling (format {version}, this one reads up to "
            f"{SCHEMA_VERSION}): "
            "update Inkling, or choose another data folder."
        )
