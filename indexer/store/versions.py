"""Which SQLite this program runs on, and whether it can do what the index needs."""

from __future__ import annotations

from dataclasses import dataclass

import apsw
import sqlite_vec


@dataclass(frozen=True, slots=True)
class StoreVersions:
    """Versions as text; `sqlite_vec` is empty where the extension cannot be loaded, and `problem` says why."""

    sqlite: str
    apsw: str
    fts5: bool
    sqlite_vec: str
    problem: str = ""


def store_versions() -> StoreVersions:
    """Ask the libraries themselves, on a database in memory."""
    connection = apsw.Connection(":memory:")
    try:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
        fts5 = "ENABLE_FTS5" in options
        try:
            connection.enable_load_extension(True)
            connection.load_extension(sqlite_vec.loadable_path())
            loaded, problem = str(connection.execute("SELECT vec_version()").get), ""
        except apsw.Error as error:
            loaded, problem = "", f"sqlite-vec cannot be loaded: {error}"
        return StoreVersions(apsw.sqlite_lib_version(), apsw.apsw_version(), fts5, loaded, problem)
    finally:
        connection.close()
