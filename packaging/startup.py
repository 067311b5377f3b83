"""How long the packaged window takes to appear, right after the page cache was dropped and with everything in memory.

    sudo python packaging/startup.py dist/inkling-0.1.0-linux-x86_64 [--runs 5]

Measured from starting the process to the first window that the display calls visible, which is asked for every 20 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from screen import Screen

DROP = Path("/proc/sys/vm/drop_caches")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="inkling-startup-") as scratch:
        screen = Screen(Path(scratch))
        try:
            executable = options.program.resolve() / "inkling-window"
            cold = [measure(executable, Path(scratch), screen, drop=True) for _ in range(options.runs)]
            warm = [measure(executable, Path(scratch), screen, drop=False) for _ in range(options.runs)]
        finally:
            screen.close()
    load = os.getloadavg()[0]
    print(json.dumps({"cold_s": cold, "warm_s": warm, "cold_median_s": round(statistics.median(cold), 2),
                      "warm_median_s": round(statistics.median(warm), 2), "load": round(load, 1)}))  # fmt: skip
    return 0


def measure(executable: Path, scratch: Path, screen: Screen, *, drop: bool) -> float:
    """Seconds until the window is seen; it is closed again."""
    if drop:
        os.sync()
        DROP.write_text("3", encoding="ascii")
    environment = {**os.environ, "DISPLAY": screen.display, "QT_QPA_PLATFORM": "xcb"}
    command = [str(executable), "--data-dir", str(scratch / "data")]
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    window = screen.wait_for_window("^Inkling$", 60)
    taken = time.perf_counter() - started
    screen.focus(window)
    time.sleep(1.5)  # the indexer it has started comes to rest
    screen.keys("ctrl+q")
    process.wait(30)
    return round(taken, 3)


if __name__ == "__main__":
    sys.exit(main())
