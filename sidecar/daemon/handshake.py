"""The line by which a client finds the daemon, on standard output and in ``daemon.json``.

{"lorekeeper":1,"address":"127.0.0.1:43211","token":"…","pid":4242,"version":"0.1.0","data_dir":"…"}
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from sidecar.storage.file_disk import FileDisk

PROTOCOL = 1
FILE = "daemon.json"


@dataclass(frozen=True)
class Handshake:
    """What a client needs to reach a daemon and to know that it is the right one.

    ``tls_address`` is where other machines reach it, with --listen; empty and left out without.
    """

    address: str
    token: str
    pid: int
    version: str
    data_dir: str
    tls_address: str = ""

    @property
    def told_data_dir(self) -> str:
        """The folder as an answer can tell it: what is no UTF-8 in its name is U+FFFD."""
        return os.fsencode(self.data_dir).decode("utf-8", "replace")

    def lives(self) -> bool:
        """Whether there is a process of its number: none after a kill, unless the number was given to another."""
        import psutil

        try:
            return psutil.pid_exists(self.pid)
        except OverflowError:  # a number that no process has
            return False

    def line(self, *, reused: bool = False) -> str:
        """One line of JSON, without the line break."""
        value = {"lorekeeper": PROTOCOL, **{name: told for name, told in asdict(self).items() if told != ""}}
        if reused:
            value["reused"] = True
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def write_file(disk: FileDisk, handshake: Handshake) -> None:
    """Put the line in ``daemon.json``, readable by the user alone."""
    disk.replace(disk.root / FILE, handshake.line().encode() + b"\n")


def read_file(folder: Path) -> Handshake | None:
    """The handshake in ``daemon.json``; None where there is none that can be read, or one that came with a copy of the
    folder of a running daemon, which is another's. It may be stale: ask the daemon."""
    try:
        value = json.loads((folder / FILE).read_bytes())
        if value["lorekeeper"] != PROTOCOL or _are_two(Path(value["data_dir"]), folder):
            return None
        return Handshake(
            address=str(value["address"]),
            token=str(value["token"]),
            pid=int(value["pid"]),
            version=str(value["version"]),
            data_dir=str(value["data_dir"]),
            tls_address=str(value.get("tls_address", "")),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _are_two(told: Path, folder: Path) -> bool:
    try:
        return not told.samefile(folder)
    except OSError:
        return False  # it was moved, or is seen from another place


def announce(handshake: Handshake, *, reused: bool = False) -> None:
    """Write the line to standard output, flushed, and close that for everything else.

    A client that reads lines sees this one and then the end; nothing printed later can disturb it.
    """
    try:
        os.write(1, handshake.line(reused=reused).encode() + b"\n")
    except OSError:
        return  # nobody listens; daemon.json has the same line
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    sys.stdout = sys.stderr
