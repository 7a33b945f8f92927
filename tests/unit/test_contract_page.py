"""docs/contract.md speaks of the contract as it is: its examples can be sent, and it names every call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"""lore (?:-d '(?P<data>[^']*)' (?:\\\s+)?)?"\$ADDRESS" lorekeeper\.v1\.(?P<name>\w+/\w+)""")
ROOMS = ("memory", "search", "chat", "compaction", "embedding", "save", "system")


def services() -> Iterator[ServiceDescriptor]:
    for room in ROOMS:
        module = import_module(f"sidecar.gen.lorekeeper.v1.{room}_pb2")
        yield from module.DESCRIPTOR.services_by_name.values()


CALLS: dict[str, MethodDescriptor] = {
    f"{service.name}/{method.name}": method for service in services() for method in service.methods
}
EXAMPLES = [(found["name"], found["data"] or "") for found in EXAMPLE.finditer(PAGE)]


def values(text: str) -> Iterator[object]:
    """The JSON values of a text that holds one after another."""
    decoder, rest = json.JSONDecoder(), text.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        yield value
        rest = rest[end:].strip()


@pytest.mark.parametrize(("name", "data"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_an_example_can_be_sent(name: str, data: str):
    request = message_factory.GetMessageClass(CALLS[name].input_type)
    for value in values(data):
        json_format.ParseDict(value, request())


def test_every_example_is_read_by_these_tests():
    assert len(EXAMPLES) == PAGE.count('"$ADDRESS" lorekeeper.v1.')


@pytest.mark.parametrize("service", [service.name for service in services()])
def test_every_service_has_an_example(service: str):
    assert any(name.startswith(f"{service}/") for name, _ in EXAMPLES)


@pytest.mark.parametrize("name", CALLS)
def test_every_call_is_named(name: str):
    service, call = name.split("/")
    section = PAGE.split(f"## {service}\n")[1].split("\n## ")[0]
    assert re.search(rf"\b{call}\b", section)
