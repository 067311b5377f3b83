"""Where Inkling keeps its things: one data folder, one cache folder, one log folder per user.

`--data-dir D` or INKLING_DATA_DIR puts all three below D, so that nothing is written anywhere else; so does a folder
`inkling-data` beside the packaged program.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from app import program
from indexer.errors import IndexerError

APP_NAME = "inkling"
DATA_DIR_VARIABLE = "INKLING_DATA_DIR"
ADVICE = "choose another one with --data-dir."


@dataclass(frozen=True)
class Folders:
    """The three folders of one user (absolute); none of them is created by asking."""

    data: Path
    cache: Path
    logs: Path

    @property
    def index(self) -> Path:
        """The index file; deleting it costs time, never data."""
        return self.data / "index.db"

    @property
    def settings(self) -> Path:
        """The settings file, readable and editable by hand."""
        return self.data / "settings.toml"

    @property
    def models(self) -> Path:
        """Where imported model folders live."""
        return self.data / "models"

    @property
    def disk_weights(self) -> Path:
        """Where published models are kept in the kernels' layout; deleting it costs time, never data."""
        return self.cache / "weights"

    def create(self) -> "Folders":
        """Make the folders, readable by their owner alone: the index holds the text of private files.

        Raises IndexerError.
        """
        self.check()
        for folder in (self.data, self.cache, self.logs):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise IndexerError(
                    f"The folder {folder} cannot be made ({error.strerror or error}); {ADVICE}"
                ) from error
        return self

    def check(self) -> None:
        """Raise IndexerError where the data folder can be no such thing: then nothing may be said of what is in it."""
        try:
            if not stat.S_ISDIR(self.data.stat().st_mode):
                raise IndexerError(f"The data folder {self.data} is a file; {ADVICE}")
            os.stat(os.path.join(self.data, "."))  # fails where nothing in the folder may be looked up
        except FileNotFoundError:
            return
        except OSError as error:
            reason = error.strerror or error
            raise IndexerError(f"The data folder {self.data} cannot be used ({reason}); {ADVICE}") from error


def folders(data_dir: str | Path | None = None) -> Folders:
    """The folders to use: `data_dir`, else INKLING_DATA_DIR, else the portable one, else what the system suggests."""
    chosen = data_dir or os.environ.get(DATA_DIR_VARIABLE) or program.portable_data()
    if chosen:
        data = Path(os.path.abspath(os.path.expanduser(chosen)))
        return Folders(data, data / "cache", data / "logs")
    return Folders(
        Path(platformdirs.user_data_dir(APP_NAME, appauthor=False)),
        Path(platformdirs.user_cache_dir(APP_NAME, appauthor=False)),
        Path(platformdirs.user_log_dir(APP_NAME, appauthor=False)),
    )
