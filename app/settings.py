"""Every setting, once: its default, unit, bounds and help; kept in settings.toml, which people may edit by hand.

A value that does not fit is refused with a sentence that names the key and its bounds: a typing mistake must not
quietly become a default. Keys this version does not know are kept as they are when the file is written.
"""

import json
import os
import tempfile
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from indexer.errors import IndexerError
from indexer.options import DEFAULT_MODEL, IndexerOptions, default_workers

AUTO = "auto"
MOST_WORKERS = 256
# The engine's own list (engine.options), spelled out: the window reads settings before it loads the engine.
PRECISIONS = (AUTO, "fp32", "int8", "int8-full")


class SettingsError(IndexerError):
    """A settings file that cannot be used; the sentence names the file, the key and what it may be."""


def _setting(
    default: Any,
    help: str,
    *,
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A dataclass field that carries its own documentation and bounds (`least` and `most` inclusive)."""
    metadata = {"help": help, "unit": unit, "least": least, "most": most, "choices": choices}
    if isinstance(default, tuple):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """What a user may change. Units are in the names where the type has none."""

    model: str = _setting(DEFAULT_MODEL, "the embedding model: a name that `inkling models list` shows, or a folder")
    precision: str = _setting(
        AUTO,
        "how the model computes; auto takes what suits the model and the processor",
        choices=PRECISIONS,
    )
    search_workers: int = _setting(
        0, "processor cores one search may use; 0 leaves one core free", unit="cores", least=0, most=MOST_WORKERS
    )
    index_workers: int = _setting(
        0, "processor cores indexing may use; 0 means half of them", unit="cores", least=0, most=MOST_WORKERS
    )
    vector_chunks_per_file: int = _setting(
        3_000,
        "passages of one file that can be found by meaning; the rest of a very long file is found by word",
        unit="passages",
        least=0,
        most=1_000_000,
    )
    offline: bool = _setting(False, "whether even `inkling models pull`, which alone uses the network, may not do so")
    theme: str = _setting("system", "colours of the window", choices=("system", "light", "dark"))


def load(path: Path) -> Settings:
    """The settings in `path`; a file that is not there means defaults. Raises SettingsError."""
    values = _read(path)
    known = {each.name: each for each in fields(Settings)}
    chosen = {key: _checked(path, known[key], value) for key, value in values.items() if key in known}
    return Settings(**chosen)


def save(path: Path, settings: Settings) -> None:
    """Write `settings` to `path` in one step: a crash leaves the old file or the new one. Raises SettingsError."""
    values = _read(path)
    values.update({each.name: getattr(settings, each.name) for each in fields(Settings)})
    text = "".join(f"{key} = {_toml(value)}\n" for key, value in sorted(values.items(), key=_tables_last))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".settings-", suffix=".toml")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def change(settings: Settings, key: str, value: Any) -> Settings:
    """`settings` with one value changed and checked. Raises SettingsError."""
    known = {each.name: each for each in fields(Settings)}
    if key not in known:
        raise SettingsError(f"There is no setting named {key}; there are {', '.join(known)}.")
    return replace(settings, **{key: _checked(None, known[key], value)})


def indexer_options(settings: Settings, data_dir: Path, *, watch: bool = True) -> IndexerOptions:
    """What these settings mean for an indexer process on `data_dir`."""
    return IndexerOptions(
        data_dir=data_dir,
        model=settings.model,
        precision=settings.precision,
        workers=settings.index_workers or default_workers(),
        watch=watch,
        vector_chunks_per_file=settings.vector_chunks_per_file,
    )


def documentation() -> list[tuple[str, str, str]]:
    """One row a setting for the README: key, default as TOML with its unit or choices, help."""
    rows = []
    for each in fields(Settings):
        default = each.default_factory() if callable(each.default_factory) else each.default
        rows.append((each.name, _toml(default), f"{each.metadata['help']} ({_bounds(each)})"))
    return rows


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{path} is not readable as settings ({error}); correct it or delete it.") from error
    except OSError as error:
        raise SettingsError(f"The settings {path} cannot be read ({error.strerror or error}).") from error


def _checked(path: Path | None, setting: Any, value: Any) -> Any:
    """The value as the field's type, or a SettingsError with the bounds."""
    kept = tuple(value) if isinstance(value, list) else value
    if _fits(setting, kept):
        return kept
    where = f"In {path}: " if path else ""
    raise SettingsError(f"{where}{setting.name} = {_toml(value)} does not fit; it must be {_bounds(setting)}.")


def _fits(setting: Any, value: Any) -> bool:
    meta = setting.metadata
    default = setting.default_factory() if callable(setting.default_factory) else setting.default
    if type(value) is not type(default):
        return False
    if isinstance(value, tuple):
        return all(isinstance(item, str) for item in value)
    if isinstance(value, str):
        return value in meta["choices"] if meta["choices"] else bool(value.strip())
    least, most = meta["least"], meta["most"]
    return (least is None or value >= least) and (most is None or value <= most)


def _bounds(setting: Any) -> str:
    meta = setting.metadata
    if meta["choices"]:
        return "one of " + ", ".join(meta["choices"])
    default = setting.default_factory() if callable(setting.default_factory) else setting.default
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, int | float):
        return f"a number from {meta['least']} to {meta['most']} {meta['unit']}".rstrip()
    return "a list of texts" if isinstance(default, tuple) else "a text that is not empty"


def _tables_last(item: tuple[str, Any]) -> tuple[bool, str]:
    return isinstance(item[1], dict), item[0]


def _toml(value: Any) -> str:
    """A value in TOML's inline form. JSON's strings, numbers and booleans are TOML's too."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str | bool | int | float):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)  # dates and times, whose text is their TOML form
