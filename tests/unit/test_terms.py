"""A text and a query meet in the same terms, in every script, in whatever form a player types."""

import sqlite3
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.errors import InvalidInput
from sidecar.search.terms import BEGINNING_MARK, MAX_CHARS, MAX_WORDS, Analyzer, says_something


@pytest.fixture(scope="module")
def english():
    return Analyzer("english")


def finds(analyzer, query, text):
    """Every word of the query is in the text, by more than its beginning."""
    words = analyzer.query(query).words
    held = set(analyzer.terms(text))
    return bool(words) and all(held & {term for term in word if BEGINNING_MARK not in term} for word in words)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("wolves", "The player spared the wolf"),
        ("WOLF", "ｗｏｌｆ in full width"),
        ("db", "the db is down"),
        ("Müller", unicodedata.normalize("NFD", "Herr Müller")),
        (unicodedata.normalize("NFD", "Müller"), "Herr Müller"),
        ("Muller", "Herr Müller"),
        ("Straße", "in der STRASSE"),
        ("Сергей", "Встретил СЕРГЕЙ у ворот"),
        ("ёлка", "елка"),
        ("istanbul", "İSTANBUL'da bir gece"),
        ("İstanbul", "istanbul"),
        ("用户", "所有用户都在这里"),
        ("設備", "這裡的設備"),
        ("设备", "这里的设备"),
        ("猫", "一只猫守在门口"),
        ("𠮷野", "昨日𠮷野家で"),
        ("サンドボックス", "新しいサンドボックスです"),
        ("ｻﾝﾄﾞ", "サンド"),
        ("ひら", "ひらがな"),
        ("마을", "작은마을에서"),
        ("마을", unicodedata.normalize("NFD", "작은 마을")),
        ("หมู่บ้าน", "ฉันอยู่ในหมู่บ้านเล็กๆ"),
        ("น้ำ", "ดื่มน้ำแล้ว"),
        ("หมู่", unicodedata.normalize("NFD", "ในหมู่บ้าน")),
        ("ບ້ານ", "ຢູ່ໃນບ້ານນ້ອຍ"),
        ("ភូមិ", "នៅក្នុងភូមិតូច"),
        ("ရွာ", "ကျွန်ုပ်၏ရွာတွင်"),
        ("गाँव", "छोटे गाँव में"),
        ("παιδιά", "ΠΑΙΔΙΑ"),
        ("كتاب", "الكتاب"),
        ("كتاب", "والكتاب"),
        ("ספר", "הספר"),
        ("محمد", "مُحَمَّد"),
        ("שלום", "שָׁלוֹם"),
        ("làng", "ngôi làng nhỏ"),
        ("itgc", "重跑gen-itgc后"),
        ("gen-itgc", "重跑gen-itgc后"),
        ("sword", "picked up iron_sword"),
        ("iron_sword", "picked up iron_sword"),
        ("🐺", "a 🐺 howls"),
        ("👍", "👍🏽 well done"),
        ("❤", "with ❤️"),
        ("12", "١٢ خيول"),
        ("ışık", "IŞIK"),
    ],
)
def test_a_word_is_found_in_the_form_in_which_it_is_typed(english, query, text):
    assert finds(english, query, text)


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [
        ("de", "Häuser", "ein Haus"),
        ("es", "canciones", "una cancion"),
        ("tr", "IŞIK", "ışık"),
        ("ru", "стражи", "стража у ворот"),
        ("en", "thieves", "a thief stole it"),
        ("en", "steal", "a thief stole it"),
        ("tr", "evler", "ev"),
        ("tr", "iron", "Iron gate"),
        ("vi", "mã", "con mã"),
        ("ru", "wolves", "a wolf"),
        ("zh-Hans", "wolves", "a wolf"),
    ],
)
def test_the_language_of_the_save_stems_its_own_script(language, query, text):
    assert finds(Analyzer(language), query, text)


def test_a_latin_word_without_its_accents_only_stands_in_for_it(english):
    assert english.query("má mà").words == (("má", "ma"), ("mà", "ma"))


def test_words_without_meaning_are_dropped_and_names_are_not(english):
    assert english.query("what is the").terms == []
    assert english.query("Will and May").terms == ["will", "may"]


def test_a_query_of_punctuation_has_no_terms(english):
    assert english.query('?! ... -- "" () * ^').terms == []


def test_operators_of_a_query_language_are_plain_words(english):
    assert english.query('wolf NEAR/2 "gate"*').terms == ["wolf", "near", "2", "gate"]


def test_ideographs_yield_each_code_point_and_each_pair(english):
    assert english.terms("一只猫 漢字ABC") == ["一", "只", "一只", "猫", "只猫", "漢", "字", "漢字", "abc"]


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [("en", "evlerimizdeki", "evlerimiz"), ("en", "Schwert", "Schwertkampf"), ("uk", "вартового", "вартовий")],
)
def test_the_beginning_of_a_long_word_stands_in_for_it(language, query, text):
    analyzer = Analyzer(language)
    assert set(analyzer.query(query).terms) & set(analyzer.terms(text))
    assert not finds(analyzer, query, text)


def test_a_joined_name_is_found_whole_and_by_its_parts(english):
    assert english.query("iron_sword").words == (("iron_sword",), ("iron",), ("sword", "sword…"))


def test_a_cut_is_told(english):
    assert not english.analyse("wolf " * MAX_WORDS).cut
    many = english.analyse("wolf " * (MAX_WORDS + 1))
    assert (len(many.words), many.cut) == (MAX_WORDS, True)
    assert english.analyse(" " * MAX_CHARS + "wolf").cut


def test_an_unknown_language_is_refused_by_name():
    with pytest.raises(InvalidInput) as caught:
        Analyzer("klingon")
    assert caught.value.field == "language"


def test_the_version_names_the_language():
    assert Analyzer("en").version == Analyzer("English").version != Analyzer("de").version


@given(st.text(max_size=200))
def test_terms_do_not_change_when_they_are_analysed_in_another_normal_form(text):
    analyzer = Analyzer("english")
    assert analyzer.terms(unicodedata.normalize("NFD", text)) == analyzer.terms(unicodedata.normalize("NFC", text))


@given(st.lists(st.text(max_size=60), max_size=5))
def test_terms_pass_through_the_full_text_index_unchanged(texts):
    terms = [term for text in texts for term in Analyzer("english").terms(text)]
    with sqlite3.connect(":memory:") as database:
        database.execute("""CREATE VIRTUAL TABLE t USING fts5(x, tokenize = "ascii tokenchars '_'")""")
        database.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")
        database.execute("INSERT INTO t VALUES (?)", [" ".join(terms)])
        stored = [row[0] for row in database.execute('SELECT term FROM v ORDER BY "offset"')]
    assert stored == terms


@pytest.mark.parametrize(("one", "other"), [("गाँव", "गांव"), ("बाज़ार", "बाजार"), ("फ़ौज", "फौज")])
def test_hindi_is_found_in_either_spelling(one, other):
    assert Analyzer().terms(one) == Analyzer().terms(other)


@pytest.mark.parametrize(
    ("text", "says"), [("?!", False), (" \n", False), ("\u0301", False), ("🐺!", True), ("ヘ", True)]
)
def test_a_text_says_something_with_a_letter_a_digit_or_a_sign(text, says):
    assert says_something(text) is says
