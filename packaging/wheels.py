"""Build the wheel for every system that the kernels are compiled for, on whichever of them this is.

    pip install hatchling ziglang
    python packaging/wheels.py [--out dist] [TARGET...]

Each is what `pip install .` would build on that system: pure Python, and one library of kernels, cross-compiled.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", default=targets(), metavar="TARGET", help=", ".join(targets()))
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where to (dist)")
    options = parser.parse_args()
    for target in options.targets:
        print(build(target, options.out.resolve()), flush=True)
    return 0


def targets() -> list[str]:
    """The systems by the names that INKLING_TARGET takes."""
    sys.path.insert(0, str(Path(__file__).parent))
    import build_hook

    return list(build_hook.TARGET_TAGS)


def build(target: str, out: Path) -> Path:
    """The wheel for one system; an error where its kernels cannot be compiled."""
    with tempfile.TemporaryDirectory(prefix="inkling-wheel-") as scratch:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", scratch]
        environment = {**os.environ, "INKLING_TARGET": target}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        (wheel,) = Path(scratch).glob("*.whl")
        if done.returncode != 0 or wheel.name.endswith("-any.whl"):
            raise SystemExit(f"no kernels for {target}: {done.stderr[-2000:]}")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheel, out / wheel.name))


if __name__ == "__main__":
    sys.exit(main())
