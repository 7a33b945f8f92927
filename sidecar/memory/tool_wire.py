"""Between the contract's tools and our own."""

from __future__ import annotations

import json

from sidecar.gen.lorekeeper.v1 import memory_pb2
from sidecar.memory.toolbox import Tool


def tool_to(tool: Tool) -> memory_pb2.Tool:
    """A tool as a game hands it on to its model."""
    return memory_pb2.Tool(
        name=tool.spec.name,
        description=tool.spec.description,
        parameters_json=json.dumps(tool.spec.parameters, ensure_ascii=False),
        function_json=json.dumps(tool.spec.function(), ensure_ascii=False),
        mutating=tool.mutating,
    )
