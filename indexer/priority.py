"""Stay out of the way: low CPU and disk priority for this process and what it starts."""

from __future__ import annotations

import logging
import sys

import psutil

log = logging.getLogger(__name__)

NICENESS = 15


def lower_priority() -> None:
    """Lowest sensible CPU priority and idle disk priority; what the system refuses is logged and left."""
    process = psutil.Process()
    try:
        if sys.platform == "win32":
            process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
            process.ionice(psutil.IOPRIO_LOW)
        else:
            process.nice(max(NICENESS, process.nice()))
            if sys.platform == "linux":
                process.ionice(psutil.IOPRIO_CLASS_IDLE)
    except (OSError, psutil.Error) as error:
        log.info("the priority stays as it is: %s", error)
