"""Backends as data: what may stand in a profile, where it is kept, and which role talks to which."""

from __future__ import annotations

import json

import pytest

from sidecar.chat.backends.failures import Failure, FailureKind
from sidecar.chat.backends.profile import Backend, ToolChannel, backend_from_json, backend_to_json, checked_backend
from sidecar.chat.backends.retries import Waits, smaller
from sidecar.chat.backends.routing import routed, summary_patterns
from sidecar.chat.backends.store import BackendStore
from sidecar.errors import Corrupt, InvalidInput, LimitReached, NotFound
from sidecar.storage.file_disk import FileDisk

URL = "http://127.0.0.1:8080/v1"


def backend(backend_id="local", **values):
    return Backend(backend_id, **{"base_url": URL, "model": "m", **values})


@pytest.mark.parametrize(
    "url", [URL, "http://localhost:1/v1/", "http://[::1]:8080", "https://127.0.0.9/v1", "http://LOCALHOST"]
)
def test_this_machine_is_allowed(url):
    assert checked_backend(backend(base_url=url)).base_url == url.rstrip("/")


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://api.example.com/v1", {}),
        ("http://10.0.0.1/v1", {"allow_remote": True}),
        ("http://127.0.0.1.example.com/v1", {"allow_plain_http": True}),
        ("http://localhost.example.com", {}),
    ],
)
def test_another_machine_is_refused_unless_it_is_allowed(url, allowed):
    with pytest.raises(InvalidInput) as caught:
        checked_backend(backend(base_url=url, **allowed))
    assert (caught.value.field, caught.value.reason) == ("base_url", "ADDRESS_NOT_ALLOWED")
    assert checked_backend(backend(base_url=url, allow_remote=True, allow_plain_http=True))


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"backend_id": " "}, "backend_id"),
        ({"backend_id": "offline"}, "backend_id"),
        ({"base_url": ""}, "base_url"),
        ({"base_url": "ftp://127.0.0.1"}, "base_url"),
        ({"base_url": "127.0.0.1:8080"}, "base_url"),
        ({"base_url": "http://user:key@127.0.0.1"}, "base_url"),
        ({"base_url": "http://127.0.0.1/v1?key=x"}, "base_url"),
        ({"base_url": "http://127.0.0.1:99999/v1"}, "base_url"),
        ({"model": " "}, "model"),
        ({"api_key_env": "sk-12345"}, "api_key_env"),
        ({"headers": {"Authorization": "Bearer x"}}, "headers"),
        ({"headers": {"x": "a\nb"}}, "headers"),
        ({"context_tokens": 255}, "context_tokens"),
        ({"temperature": 2.1}, "temperature"),
        ({"max_retries": 11}, "max_retries"),
        ({"extra_body_json": "[]"}, "extra_body_json"),
        ({"extra_body_json": '{"min_p": NaN}'}, "extra_body_json"),
        ({"extra_body_json": '{"stop": "\\ud83d"}'}, "extra_body_json"),
        ({"extra_body_json": '{"messages": []}'}, "extra_body_json"),
        ({"roles": ("",)}, "roles[0]"),
    ],
)
def test_what_cannot_stand_in_a_profile_is_named(values, field):
    with pytest.raises(InvalidInput) as caught:
        checked_backend(backend(**values))
    assert caught.value.field == field
    assert "sk-12345" not in caught.value.message


def test_a_profile_is_written_without_its_defaults_and_read_back():
    written = backend(
        roles=("a*",), tool_channel=ToolChannel.TEXT, temperature=0.0, streaming=False, headers={"x": "y"}
    )
    value = json.loads(json.dumps(backend_to_json(written)))
    assert set(value) == {
        "backend_id",
        "base_url",
        "model",
        "roles",
        "tool_channel",
        "temperature",
        "streaming",
        "headers",
    }
    assert backend_from_json(value) == written


def test_backends_are_there_after_a_restart(tmp_path):
    store = BackendStore(FileDisk(tmp_path), max_backends=2)
    store.put(backend("b"))
    store.put(backend("a", api_key_env="MY_KEY"))
    again = BackendStore(FileDisk(tmp_path), max_backends=2)
    assert [each.backend_id for each in again.listed()] == ["a", "b"]
    assert [each.backend_id for each in again.all()] == ["a", "b", "offline"]
    assert again.delete("a")
    assert not again.delete("a")
    with pytest.raises(NotFound):
        again.get("a")


def test_there_are_only_so_many_backends(tmp_path):
    store = BackendStore(FileDisk(tmp_path), max_backends=1)
    store.put(backend("a"))
    store.put(backend("a", model="other"))
    with pytest.raises(LimitReached):
        store.put(backend("b"))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"backends": [{}]}',
        '{"backends": [{"backend_id": "a", "nonsense": 1}]}',
        '{"backends": [{"backend_id": "a", "kind": "offline", "streaming": "no"}]}',
        '{"backends": [{"backend_id": "a", "kind": "offline", "max_retries": true}]}',
        '{"backends": [{"backend_id": "a", "kind": "offline", "roles": [1]}]}',
        '{"x": 1}',
    ],
)
def test_a_file_that_cannot_be_read_is_left_as_it_is(tmp_path, text):
    (tmp_path / "backends.json").write_text(text, "utf-8")
    with pytest.raises(Corrupt):
        BackendStore(FileDisk(tmp_path), max_backends=1).all()
    assert (tmp_path / "backends.json").read_text("utf-8") == text


@pytest.mark.parametrize(
    ("role", "expected"),
    [("Guard", "exact"), ("Guard2", "long"), ("Goat", "short"), ("Cat", "any"), ("guard", "any"), ("Guard*", "long")],
)
def test_the_most_exact_pattern_wins(role, expected):
    backends = [
        backend("any", roles=("*",)),
        backend("exact", roles=("x", "Guard")),
        backend("long", roles=("Gua*",)),
        backend("short", roles=("G*",)),
    ]
    assert routed(role, backends).backend_id == expected
    assert routed(role, reversed(backends)).backend_id == expected


def test_of_equal_patterns_the_first_by_id_wins_and_without_one_there_is_none():
    assert routed("x", [backend("b", roles=("*",)), backend("a", roles=("*",))]).backend_id == "a"
    assert routed("x", [backend("a", roles=("y",))]) is None


def test_summaries_have_routes_of_their_own():
    backends = [backend("a", roles=("*",)), backend("b", compaction_roles=("*",))]
    assert routed("x", backends, summary_patterns).backend_id == "b"


def test_waits_double_up_to_the_longest_and_a_server_is_obeyed_within_it():
    waits = Waits(2_000, 30_000)
    assert [waits.wait_ms(attempt, None) for attempt in (1, 2, 3, 9)] == [2_000, 4_000, 8_000, 30_000]
    assert (waits.wait_ms(1, 0), waits.wait_ms(1, 30_000), waits.wait_ms(1, 30_001)) == (0, 30_000, None)


@pytest.mark.parametrize(
    ("told", "window", "estimated", "allowed"),
    [
        (4_096, 8_192, 9_000, 3_840),
        (32_768, 65_536, 40_000, 31_130),
        (0, 8_192, 6_000, 4_500),
        (0, 4_000, 9_000, 4_000),
        (256, 8_192, 600, 256),
    ],
)
def test_a_prompt_that_was_too_long_is_given_a_smaller_window(told, window, estimated, allowed):
    failure = Failure(FailureKind.CONTEXT_LENGTH_EXCEEDED, "", window=told)
    assert smaller(failure, attempt=1, window=window, estimated=estimated).window == allowed


def test_each_further_try_leaves_less_for_the_history():
    failure = Failure(FailureKind.CONTEXT_LENGTH_EXCEEDED, "")
    scales = [smaller(failure, attempt=n, window=8_192, estimated=9_000).scale for n in (1, 2, 3)]
    assert scales == [0.75, 0.75**2, 0.75**3]
