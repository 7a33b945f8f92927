"""What goes to the model: a request made from the prompt, the turn and the backend. No I/O.

A turn and ``BuildPrompt`` make their requests here alone, so that what is shown is what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sidecar.chat.backends.taking_turns import in_order
from sidecar.chat.backends.wire import Ask, WireMessage
from sidecar.chat.prompt import tool_tokens
from sidecar.chat.prompts import Prompt
from sidecar.chat.turns.choice import Chosen
from sidecar.chat.turns.opening import Opening


def request_of(
    opening: Opening, chosen: Chosen, prompt: Prompt, added: Sequence[WireMessage] = (), *, with_tools: bool = True
) -> Ask:
    """The request. ``added`` is what a further one says beyond the first, which alone forces a call."""
    sent = [message for message in prompt.messages if not (added and message.once)]
    form = opening.turn.form
    return Ask(
        messages=in_order(
            [*(WireMessage(message.role, message.content) for message in sent), *added], chosen.role_order
        ),
        tools=[tool.function() for tool in prompt.tools] if with_tools else [],
        tool_choice="auto" if added else _choice(prompt.must_call),
        model=chosen.model,
        temperature=opening.temperature(chosen),
        max_output_tokens=opening.longest(chosen) or None,
        schema=form.schema if form else None,
        role_id=opening.role.role_id,
    )


def tokens_of(ask: Ask, prompt: Prompt) -> int:
    """The tokens of a request made from the prompt, as the prompt's own counter counts them."""
    counter = prompt.counter
    said = sum(counter.count(_all_of(message)) for message in ask.messages)
    return said + (tool_tokens(prompt.tools, counter) if ask.tools else 0)


def _choice(must_call: str | None) -> str | Mapping[str, Any]:
    if must_call:
        return {"type": "function", "function": {"name": must_call}}
    return "auto" if must_call is None else "required"


def _all_of(message: WireMessage) -> str:
    return message.content + "".join(f"{call.name}{call.arguments}" for call in message.calls)
