"""Models that are made in a moment: real graphs and tokenizers of the shapes that the daemon knows, with few numbers.

Words with a meaning of their own: ``slow`` makes a run last until it is stopped, ``nan`` makes its vector NaN.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

WORDS = ("warm", "cat", "dog", "guard", "sword", "iron", "rain", "gate", "market", "song", "slow", "nan")
MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
VOCABULARY = (*MARKS, *WORDS)
ROWS = 1_024
BGE_CONFIG = {
    "_name_or_path": "BAAI/bge-m3",
    "model_type": "xlm-roberta",
    "hidden_size": 1024,
    "bos_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "type_vocab_size": 1,
    "vocab_size": 250_002,
    "max_position_embeddings": 8_194,
}
BGE_TOKENIZER = {"tokenizer_class": "XLMRobertaTokenizer", "model_max_length": 8_192}


def table(dimensions: int, seed: int = 7) -> np.ndarray:
    """The token embeddings of every tiny model."""
    rows = np.random.default_rng(seed).normal(size=(ROWS, dimensions)).astype(np.float32)
    rows[VOCABULARY.index("nan")] = np.nan
    return rows


def graph(
    dimensions: int,
    *,
    seed: int = 7,
    inputs: Iterable[str] = ("input_ids", "attention_mask", "token_type_ids"),
    input_type: str = "INT64",
    output: str = "last_hidden_state",
    scaled_by_batch: bool = False,
) -> bytes:
    """Each token's state is its own embedding plus the mean of its text's, so that every token counts."""
    from onnx import TensorProto, helper, numpy_helper

    kind = getattr(TensorProto, input_type)
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["ids"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "ids"], ["own"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["weights"]),
        helper.make_node("Mul", ["own", "weights"], ["counted"]),
        helper.make_node("ReduceSum", ["counted", "middle"], ["sum"], keepdims=1),
        helper.make_node("ReduceSum", ["weights", "middle"], ["count"], keepdims=1),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        *_waiting(helper, TensorProto),
        helper.make_node("Add", ["own", "mean"], ["mixed"]),
        helper.make_node("Add", ["mixed", "nothing"], ["states"]),
    ]
    nodes += _scaled(helper, output) if scaled_by_batch else [helper.make_node("Identity", ["states"], [output])]
    constants = {
        "table": table(dimensions, seed),
        "last": np.array([2]),
        "middle": np.array([1]),
        "slow": np.array(VOCABULARY.index("slow")),
        "turns": np.array(10**9),
        "yes": np.array(True),
        "zero": np.array(0.0, np.float32),
    }
    made = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind, ["batch", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", "tokens", dimensions])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def _waiting(helper: Any, types: Any) -> list[Any]:
    """``nothing`` is zero; where a text holds ``slow`` it takes a thousand million turns to find that out."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Mul", ["value", "value"], ["next"]),
        ],
        "turn",
        [
            helper.make_tensor_value_info("turn", types.INT64, []),
            helper.make_tensor_value_info("go", types.BOOL, []),
            helper.make_tensor_value_info("value", types.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("go_on", types.BOOL, []),
            helper.make_tensor_value_info("next", types.FLOAT, []),
        ],
    )
    return [
        helper.make_node("Equal", ["ids", "slow"], ["is_slow"]),
        helper.make_node("Cast", ["is_slow"], ["slow_number"], to=types.INT64),
        helper.make_node("ReduceMax", ["slow_number"], ["any_slow"], keepdims=0),
        helper.make_node("Mul", ["any_slow", "turns"], ["trips"]),
        helper.make_node("Loop", ["trips", "yes", "zero"], ["nothing"], body=body),
    ]


def _scaled(helper: Any, output: str) -> list[Any]:
    return [
        helper.make_node("DynamicQuantizeLinear", ["states"], ["small", "scale", "point"]),
        helper.make_node("DequantizeLinear", ["small", "scale", "point"], [output]),
    ]


def tokenizer_json() -> bytes:
    """Whole words between white space."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    words.enable_truncation(4)
    words.enable_padding(length=16)
    return words.to_str().encode("utf-8")


def manifest(**changes: Any) -> str:
    """A ``lorekeeper-model.toml``; ``prefixes`` and ``files`` are tables of their own."""
    prefixes = changes.pop("prefixes", {})
    files = changes.pop("files", {})
    values = {"id": "tiny", "dimensions": 8, "max_tokens": 16, "pooling": "mean", **changes}
    lines = ["[model]", *(f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None)]
    lines += ["[prefixes]", *(f"{key} = {json.dumps(value)}" for key, value in prefixes.items())]
    for name, facts in files.items():
        lines += [f"[files.{json.dumps(name)}]", *(f"{key} = {json.dumps(value)}" for key, value in facts.items())]
    return "\n".join(lines) + "\n"


def write_model(folder: Path, *, weights: bytes | None = None, **changes: Any) -> Path:
    """A folder with a manifest, a graph and a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lorekeeper-model.toml").write_text(manifest(**changes), "utf-8")
    (folder / "model.onnx").write_bytes(weights or graph(changes.get("dimensions", 8)))
    (folder / "tokenizer.json").write_bytes(tokenizer_json())
    return folder


def write_bge_m3(folder: Path, *, config: Any = None, tokenizer: Any = None) -> Path:
    """The layout, the checks and the dimensions of BGE-M3, with a tiny graph and vocabulary."""
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**BGE_CONFIG, **(config or {})}), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({**BGE_TOKENIZER, **(tokenizer or {})}), "utf-8")
    (folder / "sentencepiece.bpe.model").write_bytes(sentencepiece_model())
    inputs = ("input_ids", "attention_mask")
    (folder / "onnx" / "model_int8.onnx").write_bytes(graph(1024, inputs=inputs, scaled_by_batch=True))
    return folder


SENTENCES = (
    "一只猫守在门口，铁匠在唱歌。",
    "一只小猫正在看门。",
    "今天市场里的铁矿价格上涨。",
    "The old guard keeps the northern gate and hates the rain.",
    "A merchant sells iron swords at the market, as he did last winter.",
    "Стражник у ворот не любит дождь и песни купца.",
    "門番は雨の日に歌を歌う。サンドボックスの剣。",
    "หมู่บ้านทางเหนือมีตลาดใหญ่",
    "Café, naïve, Ångström: accents are kept or composed.",
    "마을 사람들은 고양이를 좋아한다.",
)


@cache
def sentencepiece_model(**options: Any) -> bytes:
    """A small model that the library itself trained; 600 pieces at most, so that ids stay within a tiny graph."""
    import sentencepiece

    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 4),
        model_writer=made,
        vocab_size=options.pop("vocab_size", 420),
        hard_vocab_limit=False,
        character_coverage=0.98,
        minloglevel=2,
        **options,
    )
    return made.getvalue()
