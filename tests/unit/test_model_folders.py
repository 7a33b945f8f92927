"""Model folders: what is recognised, what is checked, and what changes an identity."""

import hashlib
import json
import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import BGE_CONFIG, graph, manifest, tokenizer_json, write_bge_m3, write_model

from sidecar.embedding.loading import Loading, verified
from sidecar.embedding.manifest import Pooling
from sidecar.embedding.model_files import ModelFolder, relative_name
from sidecar.errors import LorekeeperError, NotReady, Reason
from sidecar.settings import EmbeddingSettings

SETTINGS = EmbeddingSettings(max_tokens=64)


def load(folder, settings=SETTINGS):
    return Loading(ModelFolder((folder,)), settings, report=lambda _step: None).model()


def reason(folder, settings=SETTINGS):
    with pytest.raises(LorekeeperError) as refused:
        load(folder, settings)
    return refused.value.reason


@pytest.fixture
def tiny(tmp_path):
    return write_model(tmp_path / "tiny")


@pytest.fixture
def bge(tmp_path):
    return write_bge_m3(tmp_path / "bge")


def test_bge_m3_is_recognised_by_its_four_files(bge):
    model = load(bge)
    declared = model.manifest.declaration
    assert len(model.manifest.files) == 4
    assert (declared.dimensions, declared.pooling, declared.query_prefix) == (1024, Pooling.CLS, "")


def test_the_identity_of_bge_m3_names_model_weights_tokenizer_and_preprocessing(bge):
    identity = load(bge).manifest.identity
    weights, pieces = (
        hashlib.sha256((bge / name).read_bytes()).hexdigest()[:16]
        for name in ("onnx/model_int8.onnx", "sentencepiece.bpe.model")
    )
    assert (identity.provider, identity.model) == ("onnx-in-process", "BAAI/bge-m3")
    assert identity.version == f"int8-{weights}-{pieces}+xlm-roberta-spm-fairseq-offset-cls-l2-v1-max64"


def test_bge_m3_with_a_tokenizer_json_alone_is_welcome(bge):
    (bge / "sentencepiece.bpe.model").unlink()
    (bge / "tokenizer.json").write_bytes(tokenizer_json())
    assert load(bge).manifest.declaration.tokenizer == "tokenizer.json"


def test_the_fast_tokenizer_class_is_welcome(tmp_path):
    load(write_bge_m3(tmp_path / "bge", tokenizer={"tokenizer_class": "XLMRobertaTokenizerFast"}))


@pytest.mark.parametrize(
    "config",
    [{key: 17} for key in BGE_CONFIG if key != "max_position_embeddings"]
    + [{"max_position_embeddings": 65}, {"_name_or_path": " "}, {"model_type": "bert"}, {"type_vocab_size": True}],
    ids=str,
)
def test_a_config_of_another_model_is_not_supported(tmp_path, config):
    assert reason(write_bge_m3(tmp_path / "bge", config=config)) is Reason.UNSUPPORTED_MODEL


@pytest.mark.parametrize(
    "tokenizer", [{"tokenizer_class": "BertTokenizer"}, {"model_max_length": 63}, {"model_max_length": 2**63}]
)
def test_a_tokenizer_config_of_another_model_is_not_supported(tmp_path, tokenizer):
    assert reason(write_bge_m3(tmp_path / "bge", tokenizer=tokenizer)) is Reason.UNSUPPORTED_MODEL


@pytest.mark.parametrize("text", ["{", "[]", "[" * 40 + "]" * 40, '{"a":' * 33 + "1" + "}" * 33, "\xff"])
def test_a_config_that_cannot_be_read_is_told_as_such(bge, text):
    (bge / "config.json").write_text(text, "latin-1")
    assert reason(bge) is Reason.MODEL_INTEGRITY


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer_config.json", "sentencepiece.bpe.model", "onnx/model_int8.onnx"]
)
def test_each_missing_file_of_bge_m3_is_named(bge, name):
    (bge / name).unlink()
    with pytest.raises(NotReady) as refused:
        load(bge)
    assert refused.value.reason is Reason.MISSING_MODEL_FILE
    assert refused.value.metadata["file"] == name


def test_an_empty_folder_lacks_its_files(tmp_path):
    assert reason(tmp_path) is Reason.MISSING_MODEL_FILE


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "lorekeeper-model.toml"])
def test_a_file_that_is_a_link_is_refused(tiny, tmp_path, name):
    (tiny / name).rename(tmp_path / "elsewhere")
    (tiny / name).symlink_to(tmp_path / "elsewhere")
    assert reason(tiny) is Reason.MODEL_INTEGRITY


def test_a_folder_within_a_model_that_is_a_link_is_refused(bge, tmp_path):
    (bge / "onnx").rename(tmp_path / "elsewhere")
    (bge / "onnx").symlink_to(tmp_path / "elsewhere")
    assert reason(bge) is Reason.MODEL_INTEGRITY


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_truncated_file_is_told_as_such(tiny, name):
    os.truncate(tiny / name, (tiny / name).stat().st_size // 2)
    assert reason(tiny) is Reason.MODEL_INTEGRITY


def test_an_empty_file_and_a_folder_in_its_place_are_refused(tiny):
    (tiny / "model.onnx").write_bytes(b"")
    assert reason(tiny) is Reason.MODEL_INTEGRITY
    (tiny / "model.onnx").unlink()
    (tiny / "model.onnx").mkdir()
    assert reason(tiny) is Reason.MODEL_INTEGRITY


def test_weights_over_the_bound_are_refused(tiny):
    (tiny / "model.onnx").write_bytes(bytes(1_048_577))
    assert reason(tiny, replace(SETTINGS, max_model_bytes=1_048_576)) is Reason.MODEL_INTEGRITY


@pytest.mark.parametrize("facts", [{"sha256": "0" * 64}, {"bytes": 5}])
def test_a_file_that_is_not_the_expected_one_is_refused(tmp_path, facts):
    assert reason(write_model(tmp_path / "m", files={"model.onnx": facts})) is Reason.MODEL_INTEGRITY


def test_the_expected_file_is_taken_whatever_the_case_of_its_hash(tmp_path):
    sha = hashlib.sha256(graph(8)).hexdigest().upper()
    load(write_model(tmp_path / "m", files={"model.onnx": {"sha256": sha, "bytes": len(graph(8))}}))


@pytest.mark.parametrize(
    "changes",
    [
        {"files": {"README.md": {"bytes": 1}}},
        {"files": {"model.onnx": {"sha256": "12"}}},
        {"files": {"model.onnx": {"size": 1}}},
        {"files": {"../model.onnx": {"bytes": 1}}},
        {"weights": "../model.onnx"},
        {"weights": "/etc/passwd"},
        {"weights": "C:\\model.onnx"},
        {"pooling": "max"},
        {"pooling": None},
        {"dimensions": 0},
        {"dimensions": "8"},
        {"max_tokens": 2},
        {"normalise": "yes"},
        {"id": " "},
        {"colour": "red"},
        {"prefixes": {"answer": "a"}},
    ],
    ids=str,
)
def test_a_manifest_with_a_wrong_line_is_refused(tiny, changes):
    (tiny / "lorekeeper-model.toml").write_text(manifest(**changes), "utf-8")
    assert reason(tiny) is Reason.EMBEDDING_CONFIGURATION


def test_a_manifest_that_is_no_toml_is_told_as_such(tiny):
    (tiny / "lorekeeper-model.toml").write_text("[model", "utf-8")
    assert reason(tiny) is Reason.MODEL_INTEGRITY


@pytest.mark.parametrize(
    "wrong",
    [
        {"inputs": ("input_ids", "attention_mask", "position_ids")},
        {"input_type": "INT32"},
        {"output": "embedding"},
    ],
    ids=str,
)
def test_a_graph_of_another_shape_is_not_supported(tmp_path, wrong):
    assert reason(write_model(tmp_path / "m", weights=graph(8, **wrong))) is Reason.UNSUPPORTED_MODEL


def test_a_graph_of_other_dimensions_is_not_supported(tmp_path):
    assert reason(write_model(tmp_path / "m", weights=graph(9))) is Reason.UNSUPPORTED_MODEL


def test_a_graph_without_token_types_and_with_another_output_can_be_declared(tmp_path):
    weights = graph(8, inputs=("input_ids", "attention_mask"), output="states_out")
    load(write_model(tmp_path / "m", weights=weights, output="states_out"))


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "other"},
        {"variant": "fp16"},
        {"pooling": "cls"},
        {"max_tokens": 15},
        {"pad_id": 1},
        {"prefixes": {"query": "query: "}},
        {"prefixes": {"document": "passage: "}},
        {"weights": graph(8, seed=8)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_whatever_changes_a_vector_changes_the_identity(tmp_path, changes):
    weights = changes.pop("weights", None)
    before = load(write_model(tmp_path / "a")).manifest.identity
    assert load(write_model(tmp_path / "b", weights=weights, **changes)).manifest.identity != before


def test_another_tokenizer_is_another_identity(tiny):
    before = load(tiny).manifest.identity
    (tiny / "tokenizer.json").write_bytes(tokenizer_json() + b"\n")
    assert load(tiny).manifest.identity != before


def test_fewer_tokens_read_is_another_identity(tiny):
    assert load(tiny).manifest.identity != load(tiny, replace(SETTINGS, max_tokens=8)).manifest.identity


def test_the_name_of_the_folder_is_no_part_of_the_identity(tiny, tmp_path):
    before = load(tiny).manifest.identity
    tiny.rename(tmp_path / "Željko 田中　テスト émoji🎮")
    assert load(tmp_path / "Željko 田中　テスト émoji🎮").manifest.identity == before


def test_verifying_hashes_the_same_files_as_loading(bge):
    assert verified(ModelFolder((bge,)), SETTINGS) == load(bge).manifest


def test_a_load_that_is_stopped_ends_before_it_is_ready(tiny):
    loading = Loading(ModelFolder((tiny,)), SETTINGS, report=lambda _step: loading.stop())
    with pytest.raises(LorekeeperError) as stopped:
        loading.model()
    assert stopped.value.reason is Reason.EMBEDDING_CANCELLED


def test_a_load_tells_bytes_hashed_then_loading_then_warming(tiny):
    steps = []
    Loading(ModelFolder((tiny,)), SETTINGS, report=steps.append).model()
    assert [step.phase.value for step in steps] == ["hashing", "hashing", "loading", "warming", "warming"]
    size = sum((tiny / name).stat().st_size for name in ("model.onnx", "tokenizer.json"))
    assert (steps[1].done, steps[1].total) == (size, size)


def test_backslashes_in_a_manifests_paths_are_accepted():
    assert relative_name("onnx\\model_int8.onnx") == "onnx/model_int8.onnx"


@given(st.binary(max_size=300), st.sampled_from(["model.onnx", "tokenizer.json", "lorekeeper-model.toml"]))
@settings(max_examples=40)
def test_garbage_in_any_file_is_told_and_never_crashes(tmp_path_factory, data, name):
    folder = write_model(tmp_path_factory.mktemp("garbage"))
    (folder / name).write_bytes(data)
    assert reason(folder) in (
        Reason.MODEL_INTEGRITY,
        Reason.UNSUPPORTED_MODEL,
        Reason.EMBEDDING_CONFIGURATION,
    )


def test_the_record_of_an_added_folder_is_compared(tiny):
    record = {"model.onnx": {"bytes": 7, "sha256": "0" * 64}}
    (tiny / "lorekeeper-files.json").write_text(json.dumps(record), "utf-8")
    assert reason(tiny) is Reason.MODEL_INTEGRITY
