"""``lorekeeper backends`` and the conversation of ``lorekeeper demo``."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from daemon_process import clean_environment, command
from wire_server import calls, stream, whole


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command(), *arguments],
        capture_output=True,
        encoding="utf-8",
        env=clean_environment(),
        check=False,
        timeout=120,
    )


def test_a_server_is_found_with_what_it_has(server: Any) -> None:
    server.models = whole({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4_096}]})
    done = run("backends", server.base_url, "--json")
    (row,) = json.loads(done.stdout)
    assert (done.returncode, row["server"], row["model"], row["context_tokens"], row["problems"]) == (
        0,
        "vLLM",
        "m",
        4_096,
        [],
    )


def test_what_is_wrong_is_said_with_an_advice(server: Any) -> None:
    done = run("backends", server.base_url)
    assert "does not tell how much text" in done.stdout
    assert "context_tokens" in done.stdout


def test_an_address_where_nothing_answers_ends_with_1() -> None:
    done = run("backends", "http://127.0.0.1:1/v1")
    assert done.returncode == 1
    assert "Nothing answers at the address." in done.stdout


def test_the_demo_plays_a_conversation_with_a_model(server: Any) -> None:
    server.play(stream("Good evening, ", "Ada."), calls(("open_door", {"door": "back"})), stream("It is open."))
    done = run("demo", "--backend", server.base_url)
    assert done.returncode == 0, done.stderr
    assert "Mira: Good evening, Ada." in done.stdout
    assert '[open_door {"door": "back"}] It is open.' in done.stdout
    assert len(server.turns) == 3


def test_the_demo_plays_without_any_server() -> None:
    done = run("demo", "--json")
    assert [step["call"] for step in json.loads(done.stdout)][-2:] == ["Converse", "Converse"]
