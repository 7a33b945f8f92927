"""The prompt cache of a model server: how much of one prompt is still the beginning of the next."""

from __future__ import annotations

from itertools import pairwise

from sidecar.gen.lorekeeper.v1 import chat_pb2

LINES = "A quiet evening at the harbour, and ship number {} had not come back yet. " + "We keep the lantern lit. " * 5


def rendered(prompt):
    """The prompt as a chat template lays it out."""
    return "".join(f"<|{message.role}|>{message.content}<|end|>" for message in prompt.messages)


def turns(chat, actor, count, first):
    """The prompts of ``count`` turns; each line and its answer are stored after its prompt was built."""
    for turn in range(first, first + count):
        prompt = chat.prompt(actor, f"And now, at hour {turn}?", world_state=f"hour {turn}")
        yield prompt
        chat.append(actor, ("user", f"And now, at hour {turn}?"), ("assistant", LINES.format(turn)))


def shares(prompts):
    """For each prompt but the first: the share of the one before that is its beginning."""
    texts = [rendered(prompt) for prompt in prompts]
    return [shared(before, after) / len(before) for before, after in pairwise(texts)]


def shared(one, other):
    """How many characters two texts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_over_ten_turns_nine_tenths_of_each_prompt_are_the_beginning_of_the_next(chat, actor):
    chat.talk(actor, 8, text=LINES)
    assert min(shares(turns(chat, actor, 11, first=0))) >= 0.9


def test_a_compaction_costs_one_cold_turn_at_most(chat, actor):
    chat.talk(actor, 60, text=LINES)
    compacted, prompts = 0, []
    for prompt in turns(chat, actor, 24, first=0):
        prompts.append(prompt)
        compacted += chat.compact(actor).compacted
    cold = sum(share < 0.9 for share in shares(prompts))
    assert 1 <= cold <= compacted <= 4


def test_what_changes_every_turn_comes_after_what_stays(chat, actor, shared_daemon):
    chat.talk(actor, 20, text=LINES)
    before = chat.prompt(actor, "Hm?", world_state="day", instructions="a")
    shared_daemon.client.write(actor, "Ada likes fish.")
    after = chat.prompt(actor, "Well?", world_state="night", instructions="b")
    stays = [m for m in before.messages if m.section <= chat_pb2.PROMPT_SECTION_KIND_HISTORY]
    assert rendered(after).startswith("".join(f"<|{m.role}|>{m.content}<|end|>" for m in stays))


def test_a_summary_that_is_too_long_for_the_prompt_is_cut_where_the_turn_before_cut_it(chat, actor):
    chat.talk(actor, 120, text=LINES)
    chat.compact(actor)
    prompts = [chat.prompt(actor, "Hm? " * turn, context_tokens=2_000) for turn in range(1, 40)]
    assert all("summary_request" in [cut.what for cut in prompt.cuts] for prompt in prompts)
    summaries = [
        message.content
        for prompt in prompts
        for message in prompt.messages
        if message.section == chat_pb2.PROMPT_SECTION_KIND_SUMMARY
    ]
    assert (len(summaries), len(set(summaries))) <= (len(prompts), 2)
