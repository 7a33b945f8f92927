"""Messages for a chat template that takes roles in turns: all that was said is said, in its order."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sidecar.chat.backends.taking_turns import BEGINNING, RoleOrder, in_order
from sidecar.chat.backends.wire import ASSISTANT, SYSTEM, TOOL, USER, WireCall, WireMessage

MESSAGES = st.lists(
    st.builds(WireMessage, st.sampled_from([SYSTEM, USER, ASSISTANT]), st.text("abc", min_size=1, max_size=3)),
    min_size=1,
    max_size=12,
)


@given(MESSAGES)
def test_any_order_is_left_as_it_is(messages):
    assert in_order(messages, RoleOrder.ANY) == messages


@given(MESSAGES, st.sampled_from([RoleOrder.IN_TURNS, RoleOrder.NO_SYSTEM]))
def test_nothing_is_left_out_and_no_role_comes_twice_in_a_row(messages, order):
    sent = in_order(messages, order)
    said = "\n\n".join(message.content for message in sent).replace(f"{BEGINNING}\n\n", "")
    assert said == "\n\n".join(message.content for message in messages)
    assert all(one.role != other.role for one, other in pairwise(sent))
    assert [message.role for message in sent if message.role == SYSTEM] == [SYSTEM] * (
        messages[0].role == SYSTEM and order is RoleOrder.IN_TURNS
    )


def test_calls_and_their_results_stay_apart():
    call = WireMessage(ASSISTANT, "", (WireCall("look", "{}", "a"),))
    results = [WireMessage(TOOL, "a door", call_id="a"), WireMessage(TOOL, "a wall", call_id="b")]
    messages = [WireMessage(USER, "Look!"), call, *results]
    assert in_order(messages, RoleOrder.IN_TURNS) == messages
