"""Token ids: equal to the SentencePiece library's own, with XLM-RoBERTa's offset; cuts are told."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import SENTENCES, VOCABULARY, sentencepiece_model, tokenizer_json

from sidecar.embedding.tokenizer import FairseqTokenizer, JsonTokenizer, TokenIds
from sidecar.errors import LorekeeperError, NotReady, Reason

KINDS = [
    {"model_type": "unigram"},
    {"model_type": "bpe"},
    {"model_type": "unigram", "user_defined_symbols": "<npc>,剑", "byte_fallback": True, "vocab_size": 700},
    {"model_type": "bpe", "user_defined_symbols": "<npc>,剑", "byte_fallback": True, "vocab_size": 700},
    {"model_type": "unigram", "remove_extra_whitespaces": False, "normalization_rule_name": "identity"},
    {"model_type": "bpe", "treat_whitespace_as_suffix": True, "normalization_rule_name": "nfkc_cf"},
    {"model_type": "unigram", "add_dummy_prefix": False},
]
RANGES = [
    (0x20, 0x7F), (0x01, 0x20), (0xC0, 0x180), (0x300, 0x330), (0x400, 0x460), (0x900, 0x970), (0xE00, 0xE50),
    (0x1100, 0x1200), (0x2000, 0x2070), (0x3040, 0x3100), (0x4E00, 0x4F00), (0xAC00, 0xAC80), (0xFF00, 0xFF60),
    (0x1F600, 0x1F640), (0x20000, 0x20020),
]  # fmt: skip


def strings(count):
    """Mixed scripts, combining marks, emoji, repetitions, white space of every kind, sentences of the training."""
    chance = random.Random(11)
    letters = [chr(code) for low, high in RANGES for code in range(low, high)]
    letters += ["▁", "\u200d", "\ufe0f", "  ", "½", "①", "ﷺ", "<npc>", "剑", "ha", "哈"]
    mixed = ("".join(chance.choices(letters, k=chance.randint(0, 60))) for _ in range(count))
    repeated = [piece * times for piece in ("ha", "哈", "😂", "a", " ", "▁", "é") for times in (1, 7, 64)]
    return ["", " ", "<s> </s> <unk>", *repeated, *SENTENCES, *mixed]


@pytest.mark.parametrize("options", KINDS, ids=lambda options: "-".join(map(str, options.values())))
def test_pieces_equal_the_librarys_own_for_two_thousand_strings(options):
    import sentencepiece

    data = sentencepiece_model(**options)
    own, library = FairseqTokenizer(data), sentencepiece.SentencePieceProcessor(model_proto=data)
    texts = strings(2_000 if len(options) == 1 else 300)
    assert [own.pieces(text) for text in texts] == library.encode(texts)


def test_ids_are_the_pieces_plus_one_with_unknown_as_three_between_marks():
    import sentencepiece

    data = sentencepiece_model(model_type="unigram")
    library = sentencepiece.SentencePieceProcessor(model_proto=data)
    texts = strings(300)
    expected = [(0, *(3 if piece == 0 else piece + 1 for piece in library.encode(text)), 2) for text in texts]
    assert [tokens.ids for tokens in FairseqTokenizer(data).encode(texts, 8_192)] == expected


def test_the_empty_text_has_the_two_marks_alone():
    assert FairseqTokenizer(sentencepiece_model()).encode([""], 16) == [TokenIds(ids=(0, 2), dropped=0)]
    assert JsonTokenizer(tokenizer_json()).encode([""], 16) == [TokenIds(ids=(2, 3), dropped=0)]


@pytest.mark.parametrize(
    "make", [lambda: FairseqTokenizer(sentencepiece_model()), lambda: JsonTokenizer(tokenizer_json())]
)
def test_a_long_text_keeps_its_beginning_and_its_end_mark_and_tells_what_was_dropped(make):
    tokenizer = make()
    (whole,), (cut,) = (tokenizer.encode(["cat dog guard sword iron rain"], most) for most in (512, 4))
    assert cut.ids == (*whole.ids[:3], whole.ids[-1])
    assert cut.dropped == len(whole.ids) - 4
    assert whole.dropped == 0


def test_the_files_own_truncation_and_padding_are_switched_off():
    text = " ".join(VOCABULARY[4:])
    assert JsonTokenizer(tokenizer_json()).encode([text], 512)[0].ids == (2, *range(4, len(VOCABULARY)), 3)


def test_a_tokenizer_that_puts_other_than_two_marks_is_not_supported():
    one_mark = tokenizer_json().replace(b'{"SpecialToken":{"id":"[CLS]","type_id":0}},', b"", 1)
    with pytest.raises(NotReady) as refused:
        JsonTokenizer(one_mark)
    assert refused.value.reason is Reason.UNSUPPORTED_MODEL


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b'{"version":"1.0"}'])
def test_a_tokenizer_json_that_cannot_be_read_is_told_as_such(data):
    with pytest.raises(NotReady) as refused:
        JsonTokenizer(data)
    assert refused.value.reason is Reason.MODEL_INTEGRITY


@given(st.binary(max_size=400) | st.integers(1, 5_000).map(lambda cut: sentencepiece_model()[:-cut]))
def test_damaged_sentencepiece_bytes_are_told_or_read_but_never_crash(data):
    try:
        FairseqTokenizer(data).encode(["cat 猫"], 16)
    except LorekeeperError as error:
        assert error.reason in (Reason.MODEL_INTEGRITY, Reason.UNSUPPORTED_MODEL, Reason.TOKENIZATION_FAILED)


def test_a_word_model_is_not_supported():
    with pytest.raises(NotReady) as refused:
        FairseqTokenizer(sentencepiece_model(model_type="word"))
    assert refused.value.reason is Reason.UNSUPPORTED_MODEL
