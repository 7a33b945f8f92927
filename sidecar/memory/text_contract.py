"""How a model without native tool calls is told of its tools, in its text. No I/O.

The same tools always give the same text: it stands in the part of a prompt that a model server keeps.
"""

from __future__ import annotations

from collections.abc import Iterable

from sidecar.memory.tool import MEMORY_TOOL

_HOW = """\
To call a tool, answer with one JSON object and nothing else: {"name": "<tool>", "arguments": {…}}
You have these tools:
"""
_MEMORY_RULE = """\
When you are asked to remember or note something, call memory before you answer, for example:
{"name": "memory", "arguments": {"action": "append", "content": "The player's name is Ada."}}
"""


def text_contract(tools: Iterable[tuple[str, str, str]]) -> str:
    """The words on tools, each a name, a description and its arguments' schema as text; empty where there are none."""
    listed = list(tools)
    if not listed:
        return ""
    lines = [f"- {name}: {description} Arguments: {schema}\n" for name, description, schema in listed]
    remembers = any(name == MEMORY_TOOL.name for name, _, _ in listed)
    return _HOW + "".join(lines) + (_MEMORY_RULE if remembers else "")
