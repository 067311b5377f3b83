"""The one entry point: no arguments open the window, a word picks a command, two hidden words are child processes."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run `inkling ARGV...` and return the exit code: 0 done, 1 known trouble, 2 wrong usage."""
    # Imported here so that a child process, which starts often, pays only for what it uses.
    from app.cli import run

    return run(list(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
