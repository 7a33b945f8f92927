"""Draws icon.ico: an open book with a spark above it. Run once when the drawing changes; the result is committed."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

SIZES = (16, 32, 48, 256)
INK, PAGE, SPARK = (38, 52, 89, 255), (244, 236, 216, 255), (240, 170, 60, 255)
CLEAR = (0, 0, 0, 0)


def colour(x: float, y: float) -> tuple[int, int, int, int]:
    """The colour at a place, both from 0 to 1, from the top left."""
    if abs(x - 0.5) + abs(y - 0.2) < 0.15:
        return SPARK
    fold = 0.36 + 0.10 * abs(x - 0.5) * 2 * (1 - abs(x - 0.5))
    if not (0.08 < x < 0.92 and fold < y < fold + 0.48):
        return CLEAR
    at_edge = x < 0.13 or x > 0.87 or y > fold + 0.43 or y < fold + 0.04 or abs(x - 0.5) < 0.02
    return INK if at_edge else PAGE


def png(size: int) -> bytes:
    rows = b"".join(
        b"\0" + b"".join(bytes(colour((x + 0.5) / size, (y + 0.5) / size)) for x in range(size)) for y in range(size)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def icon() -> bytes:
    pictures = [png(size) for size in SIZES]
    offset = 6 + 16 * len(pictures)
    entries = b""
    for size, picture in zip(SIZES, pictures, strict=True):
        entries += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(picture), offset)
        offset += len(picture)
    return struct.pack("<HHH", 0, 1, len(pictures)) + entries + b"".join(pictures)


if __name__ == "__main__":
    Path(__file__).with_name("icon.ico").write_bytes(icon())
