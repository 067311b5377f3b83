"""Icons for Windows and macOS from the PNG files in resources/icons: both formats are boxes around PNG images."""

from __future__ import annotations

import struct
from pathlib import Path

SIZES = (16, 32, 48, 64, 128, 256)
# macOS names each size by four letters; the 2x kinds show the same picture at half the size on fine screens.
ICNS_KINDS = {"icp4": 16, "icp5": 32, "icp6": 64, "ic07": 128, "ic08": 256, "ic11": 32, "ic12": 64, "ic13": 256}


def read(folder: Path) -> dict[int, bytes]:
    """The icon in every size, as PNG bytes by edge length in pixels."""
    return {size: (folder / f"inkling-{size}.png").read_bytes() for size in SIZES}


def ico(images: dict[int, bytes]) -> bytes:
    """A Windows icon file holding all images."""
    head = struct.pack("<HHH", 0, 1, len(images))
    at = len(head) + 16 * len(images)
    rows, data = b"", b""
    for size, png in sorted(images.items()):
        edge = size % 256  # 256 is written as 0
        rows += struct.pack("<BBBBHHII", edge, edge, 0, 0, 1, 32, len(png), at + len(data))
        data += png
    return head + rows + data


def icns(images: dict[int, bytes]) -> bytes:
    """A macOS icon file holding all images."""
    parts = [(kind.encode(), images[size]) for kind, size in ICNS_KINDS.items()]
    body = b"".join(kind + struct.pack(">I", 8 + len(png)) + png for kind, png in parts)
    return b"icns" + struct.pack(">I", 8 + len(body)) + body
