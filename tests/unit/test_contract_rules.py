"""Rules that every file of the contract keeps, beside those that buf knows."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)

PROTOS = Path(__file__).parents[2] / "protos"
FILES = sorted(PROTOS.rglob("*.proto"))

# Answers that speak of the daemon, of models, of roles and backends, or of several saves at once.
NOT_ABOUT_ONE_SAVE = {
    "CountTokensResponse",
    "DeleteBackendResponse",
    "DeleteRoleResponse",
    "EmbedResponse",
    "ErasePlayerResponse",
    "GetEmbeddingStatsResponse",
    "GetInfoResponse",
    "GetRoleResponse",
    "GetStatsResponse",
    "ListBackendsResponse",
    "ListModelsResponse",
    "ListRolesResponse",
    "ListSavesResponse",
    "LoadModelResponse",
    "ProbeBackendResponse",
    "PutBackendResponse",
    "PutRoleResponse",
    "ShutdownResponse",
    "UnloadModelResponse",
    "WatchDiagnosticsResponse",
}

CALLS = {
    "MemoryService": "GetDocument EditDocument ListDocumentVersions RevertDocument ResetDocument ListTools CallTool "
    "AddRecords GetRecord ListRecords SupersedeRecord ForgetRecords ShareRecord PutGroups ListActors EraseActor",
    "ChatService": "AppendMessages ListMessages ListTranscript AppendTranscript ClearHistory PutRole GetRole "
    "ListRoles DeleteRole BuildPrompt Send Converse PutBackend ListBackends ProbeBackend",
    "CompactionService": "Compact PreviewWindow GetSummary PutSummary ClearSummary CountTokens",
    "EmbeddingService": "Embed ListModels LoadModel UnloadModel GetEmbeddingStats",
    "SearchService": "Search GetIndexStatus RebuildIndex",
    "SaveService": "ListSaves CreateCheckpoint ListCheckpoints RestoreCheckpoint DeleteCheckpoint ForkSave "
    "ExportSave ImportSave EraseSave",
    "SystemService": "GetInfo GetStats WatchDiagnostics Shutdown",
}


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> list[FileDescriptorProto]:
    """The contract as protoc reads it, comments included."""
    target = tmp_path_factory.mktemp("contract") / "contract.binpb"
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(PROTOS), "--include_source_info"]
    subprocess.run([*command, f"--descriptor_set_out={target}", *map(str, FILES)], check=True)
    return list(FileDescriptorSet.FromString(target.read_bytes()).file)


def code_of(path: Path) -> str:
    """The text of a file without its comments."""
    return re.sub(r"//.*", "", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_that_breaks_il2cpp_is_used(path: Path):
    code = code_of(path)
    assert not re.search(r"\bextend\b", code)
    assert "google/api" not in code
    assert "google/protobuf/descriptor" not in code


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_message_is_without_a_shape(path: Path):
    assert not re.search(r"google\.protobuf\.(Struct|Value|Any)\b", code_of(path))


def test_every_file_names_the_csharp_namespace_and_the_package(contract: list[FileDescriptorProto]):
    assert {(file.package, file.options.csharp_namespace) for file in contract} == {("lorekeeper.v1", "Lorekeeper.V1")}


@pytest.mark.parametrize("service", CALLS)
def test_every_call_that_clients_rely_on_is_there(contract: list[FileDescriptorProto], service: str):
    found = {s.name: {call.name for call in s.method} for file in contract for s in file.service}
    assert set(CALLS[service].split()) <= found[service]


def test_an_answer_about_a_save_carries_its_state_first(contract: list[FileDescriptorProto]):
    answers = {message.name: message for file in contract for message in file.message_type}
    for name in {name for name in answers if name.endswith("Response")} - NOT_ABOUT_ONE_SAVE:
        save = next((field for field in answers[name].field if field.number == 1), None)
        assert save is not None and (save.name, save.type_name) == ("save", ".lorekeeper.v1.SaveState"), name


def test_the_list_of_answers_that_are_not_about_one_save_is_exact(contract: list[FileDescriptorProto]):
    answers = {message.name: message for file in contract for message in file.message_type}
    without = {name for name in NOT_ABOUT_ONE_SAVE if all(field.name != "save" for field in answers[name].field)}
    assert without == NOT_ABOUT_ONE_SAVE


def test_every_page_can_be_asked_for_and_followed(contract: list[FileDescriptorProto]):
    messages = {m.name: {field.name for field in m.field} for file in contract for m in file.message_type}
    asking = {name for name, fields in messages.items() if "page_token" in fields}
    for name in asking:
        assert "page_size" in messages[name], name
        assert "next_page_token" in messages[name.replace("Request", "Response")], name


def test_every_element_has_a_sentence(contract: list[FileDescriptorProto]):
    bare = [f"{file.name}: {name}" for file in contract for name in elements_without_comment(file)]
    assert bare == []


def elements_without_comment(file: FileDescriptorProto) -> Iterator[str]:
    """The names of the elements of a file whose leading comment is missing or not a sentence."""
    places = file.source_code_info.location
    comments = {tuple(place.path): place.leading_comments.strip() for place in places}
    for path, name in elements(file):
        if not comments.get(path, "").endswith((".", ")")):
            yield name


Element = tuple[tuple[int, ...], str]


def elements(file: FileDescriptorProto) -> Iterator[Element]:
    """Every message, field, choice, enum, value, service and call, with its path in the descriptor."""
    for index, message in enumerate(file.message_type):
        yield from message_elements((4, index), message)
    for index, enum in enumerate(file.enum_type):
        yield from enum_elements((5, index), enum)
    for index, service in enumerate(file.service):
        yield from service_elements((6, index), service)


def message_elements(path: tuple[int, ...], message: DescriptorProto) -> Iterator[Element]:
    yield path, message.name
    synthetic = {field.oneof_index for field in message.field if field.proto3_optional}
    for index, field in enumerate(message.field):
        yield (*path, 2, index), f"{message.name}.{field.name}"
    for index, choice in enumerate(message.oneof_decl):
        if index not in synthetic:
            yield (*path, 8, index), f"{message.name}.{choice.name}"


def enum_elements(path: tuple[int, ...], enum: EnumDescriptorProto) -> Iterator[Element]:
    yield path, enum.name
    for index, value in enumerate(enum.value):
        yield (*path, 2, index), value.name


def service_elements(path: tuple[int, ...], service: ServiceDescriptorProto) -> Iterator[Element]:
    yield path, service.name
    for index, call in enumerate(service.method):
        yield (*path, 2, index), f"{service.name}.{call.name}"
