"""Imported by every Python that the tests start: puts the network guard into it."""

import importlib.util
from pathlib import Path

_path = Path(__file__).resolve().parent.parent / "network_guard.py"
_spec = importlib.util.spec_from_file_location("inkling_network_guard", _path)
assert _spec is not None and _spec.loader is not None
_guard = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_guard)
_guard.install()
