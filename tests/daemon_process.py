"""A real daemon in a process of its own, started and talked to as a game does it."""

from __future__ import annotations

import json
import os
import queue
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from client import Client

START_SECONDS = 20.0
END_SECONDS = 20.0

# All that may lie in a data folder while no daemon runs on it.
DATA = {
    "answers.jsonl",
    "backends.json",
    "backups",
    "checkpoints",
    "exchange",
    "format.json",
    "index",
    "logs",
    "lorekeeper.toml",
    "models",
    "repaired",
    "roles.json",
    "saves",
}


def command() -> list[str]:
    """The program under test: LOREKEEPER_COMMAND, by default the script that is installed beside this Python."""
    given = os.environ.get("LOREKEEPER_COMMAND")
    return shlex.split(given) if given else [str(Path(sys.executable).with_name("lorekeeper"))]


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without settings of the daemon; no model, which few tests need."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LOREKEEPER_")}
    return {**inherited, "LOREKEEPER_EMBEDDING_MODEL": "none", **(extra or {})}


def run_command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a command says on a folder, and how it ends."""
    return subprocess.run(
        [*command(), *words, "--data-dir", str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=clean_environment(),
        check=False,
    )


def wait_for_file(path: Path) -> None:
    """Return once ``path`` is there: for a daemon whose standard output cannot be read."""
    deadline = time.monotonic() + START_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} never came"
        time.sleep(0.02)


class DaemonProcess:
    """``lorekeeper serve`` on ``folder``. ``arguments`` and ``environment`` are added to every start."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        stderr: Path,
        lifeline: bool = True,
    ) -> None:
        self.folder = folder
        self.stderr_file = stderr
        self._arguments = ("serve", "--data-dir", str(folder), *(["--stdin-lifeline"] if lifeline else []), *arguments)
        self._environment = clean_environment(environment)
        self._clients: list[Client] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self.process: subprocess.Popen[bytes] | None = None
        self.handshake: Mapping[str, Any] = {}

    def start(self) -> DaemonProcess:
        """Start it and read its handshake line."""
        self.launch()
        self.handshake = json.loads(self.next_line())
        return self

    def launch(self) -> None:
        """Start it without waiting for anything."""
        self._lines = queue.Queue()
        with self.stderr_file.open("ab") as stderr:
            self.process = subprocess.Popen(
                [*command(), *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=self._environment,
            )
        threading.Thread(target=_pass_lines, args=(self.process, self._lines), daemon=True).start()

    def next_line(self) -> str:
        """The next line of standard output, "" at its end. Raises queue.Empty where none comes in time."""
        return self._lines.get(timeout=START_SECONDS)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def token(self) -> str:
        return self.handshake["token"]

    @property
    def address(self) -> str:
        return self.handshake["address"]

    @property
    def stderr(self) -> str:
        return self.stderr_file.read_text("utf-8", errors="replace")

    def connect(self, *, token: str | None = None) -> Client:
        """A new client; with the daemon's token unless another one is given. It is closed with the daemon."""
        client = Client(self.address, self.token if token is None else token)
        self._clients.append(client)
        return client

    @property
    def client(self) -> Client:
        """A client of this run of the daemon."""
        return self._clients[0] if self._clients else self.connect()

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, seconds: float = END_SECONDS) -> int:
        """The exit code, once the process has ended by itself."""
        assert self.process is not None
        code = self.process.wait(seconds)
        self._let_go()
        return code

    def kill(self) -> None:
        """End it as a crash would: nothing can be tidied up."""
        assert self.process is not None
        self.process.kill()
        self.wait()

    def stop(self) -> int:
        """End it as a game does that ends or crashes: standard input closes."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait()

    def restart(self) -> DaemonProcess:
        """End it where it still runs, and start it again on the same folder."""
        if self.running:
            assert self.stop() == 0, self.stderr
        return self.start()

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def left_over(self) -> set[str]:
        """What lies in the data folder and is no data."""
        return {path.name for path in self.folder.iterdir()} - DATA if self.folder.is_dir() else set()

    def close(self) -> None:
        """End it, and see that it ended well and left nothing but data."""
        if not self.running:
            self._let_go()
            return
        try:
            code = self.stop()
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert code == 0, self.stderr
        assert "Traceback" not in self.stderr, self.stderr
        assert not self.left_over()

    def _let_go(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()


def _pass_lines(process: subprocess.Popen[bytes], lines: queue.Queue[str]) -> None:
    assert process.stdout is not None
    with process.stdout as stdout:
        for line in stdout:
            lines.put(line.decode("ascii"))
    lines.put("")
