"""Every service of the contract, by its full name, and the generated module that describes it."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = {
    "MemoryService": "memory_pb2",
    "ChatService": "chat_pb2",
    "CompactionService": "compaction_pb2",
    "EmbeddingService": "embedding_pb2",
    "SearchService": "search_pb2",
    "SaveService": "save_pb2",
    "SystemService": "system_pb2",
}
_PACKAGE = "lorekeeper.v1"

SERVICES = tuple(f"{_PACKAGE}.{name}" for name in _MODULES)


def descriptor(service: str) -> Any:
    """The descriptor of a service in :data:`SERVICES`; imports its module."""
    name = service.removeprefix(f"{_PACKAGE}.")
    module = importlib.import_module(f"sidecar.gen.{_PACKAGE}.{_MODULES[name]}")
    return module.DESCRIPTOR.services_by_name[name]
