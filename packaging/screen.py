"""A display nobody sees, with hands: starts Xvfb, finds windows, presses keys, reads the clipboard, takes pictures."""

from __future__ import annotations

import os
import struct
import subprocess
import time
import zlib
from pathlib import Path

SIZE = (1280, 800)


class Screen:
    """One Xvfb. There is no window manager, as on no real desktop, so a window is given the keyboard by hand."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        told, tell = os.pipe()
        mode = f"{SIZE[0]}x{SIZE[1]}x24"
        command = ["Xvfb", "-displayfd", str(tell), "-screen", "0", mode, "-nolisten", "tcp", "-ac", "-fbdir", folder]
        self._server = subprocess.Popen(command, stderr=subprocess.DEVNULL, pass_fds=[tell])
        os.close(tell)
        with os.fdopen(told, encoding="ascii") as numbers:
            self.display = f":{numbers.readline().strip()}"  # a free one, which the server finds itself
        assert self.display != ":", "Xvfb did not start"
        self._environment = {**os.environ, "DISPLAY": self.display}

    def close(self) -> None:
        self._server.terminate()
        self._server.wait()

    def wait_for_window(self, title: str, within_s: float = 30.0) -> str:
        """The id of the newest visible window whose title matches (a regular expression)."""
        until = time.monotonic() + within_s
        while not (found := self._xdotool("search", "--onlyvisible", "--name", title).stdout.split()):
            assert time.monotonic() < until, f"no window named {title} within {within_s} s"
            time.sleep(0.02)
        return found[-1]

    def wait_until_gone(self, title: str, within_s: float = 10.0) -> None:
        """Until no visible window has that title."""
        until = time.monotonic() + within_s
        while self._xdotool("search", "--onlyvisible", "--name", title).stdout.split():
            assert time.monotonic() < until, f"the window {title} is still there"
            time.sleep(0.05)

    def focus(self, window: str) -> None:
        """Give a window the keyboard."""
        assert self._xdotool("windowfocus", "--sync", window).returncode == 0
        time.sleep(0.2)

    def keys(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            assert self._xdotool("key", "--clearmodifiers", key).returncode == 0
            time.sleep(0.15)

    def type(self, text: str) -> None:
        """Type ASCII text."""
        assert self._xdotool("type", "--delay", "30", text).returncode == 0

    def click(self, window: str, x: int, y: int) -> None:
        """Click at a place of a window."""
        assert self._xdotool("mousemove", "--window", window, str(x), str(y), "click", "1").returncode == 0
        time.sleep(0.3)

    def clipboard(self) -> str:
        """The text on the clipboard, empty where there is none."""
        command = ["timeout", "5", "xclip", "-o", "-selection", "clipboard"]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, encoding="utf-8").stdout

    def picture(self, name: str) -> Path:
        """Save what the display shows as a PNG file."""
        target = self._folder / f"{name}.png"
        target.write_bytes(png((self._folder / "Xvfb_screen0").read_bytes()))
        return target

    def _xdotool(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["xdotool", *arguments], env=self._environment, capture_output=True, text=True)


def png(dump: bytes) -> bytes:
    """A PNG file of an X window dump with 32 bits a pixel (blue, green, red, unused), as Xvfb keeps its screen."""
    fields = struct.unpack(">25I", dump[:100])
    header_bytes, width, height, stride, colours = fields[0], fields[4], fields[5], fields[12], fields[19]
    pixels = dump[header_bytes + 12 * colours :]
    rows = bytearray()
    for y in range(height):
        line = pixels[y * stride : y * stride + 4 * width]
        row = bytearray(3 * width)
        row[0::3], row[1::3], row[2::3] = line[2::4], line[1::4], line[0::4]
        rows += b"\0" + row
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(bytes(rows), 6))]
    body = b"".join(chunk(kind, data) for kind, data in [*parts, (b"IEND", b"")])
    return b"\x89PNG\r\n\x1a\n" + body


def chunk(kind: bytes, data: bytes) -> bytes:
    """One part of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
