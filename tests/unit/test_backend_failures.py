"""What servers say when something is wrong: each one's words, and what they mean."""

from __future__ import annotations

import json

import pytest

from sidecar.chat.backends.failures import FailureKind, retry_after, status_failure, told_failure

K = FailureKind
LM_STUDIO_KEEP = (
    "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context "
    "length of only 7866 tokens, which is not enough. Try to load the model with a larger context length."
)
LM_STUDIO_N_KEEP = (
    "The number of tokens to keep from the initial prompt is greater than the context length "
    "(n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."
)
VLLM = (
    "This model's maximum context length is 2048 tokens. However, you requested 2500 tokens (2400 in the messages, 100 "
    "in the completion). Please reduce the length of the messages or completion."
)
OPENAI = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."

WORDED = [
    (
        "vLLM, no chat",
        400,
        "The decoder prompt (length 5013) is longer than the maximum model length of 4096. Use a longer one.",
        4_096,
    ),
    ("SGLang", 400, "The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4_096),
    ("TGI", 422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", 4_096),
    ("Gemini", 400, "The input token count (9000) exceeds the maximum number of tokens allowed (8192).", 8_192),
    ("Mistral", 400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32_768),
    ("llama-cpp-python", 500, "Requested tokens (5000) exceed context window of 2048", 2_048),
    ("Anthropic", 400, "prompt is too long: 200251 tokens > 200000 maximum", 200_000),
    ("TabbyAPI", 400, "Prompt length 5000 is greater than max_seq_len 4096", 4_096),
    ("LMDeploy", 400, "The input prompt length exceeds the session_len 4096", 4_096),
    ("Moonshot", 400, "Invalid request: Your request exceeded model token limit: 8192", 8_192),
    ("Zhipu", 400, "Prompt exceeds max length", 0),
    ("MLX", 400, "Prompt too long: 5000 tokens", 0),
    ("one with commas", 400, "The maximum context length is 131,072 tokens.", 131_072),
]

# server, status, body, kind, the window that it tells
OVERFLOWS = [
    (
        "llama.cpp",
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 1407,
                "n_ctx": 256,
            }
        },
        256,
    ),
    (
        "llama.cpp, older",
        500,
        {
            "error": {
                "code": 500,
                "message": "the request exceeds the available context size. try "
                "increasing the context size or enable context shift",
                "type": "server_error",
            }
        },
        0,
    ),
    ("llama.cpp, oldest", 400, {"error": {"message": "input is too large: exceeds context size (512 tokens)"}}, 512),
    ("LM Studio", 400, {"error": LM_STUDIO_KEEP}, 7866),
    ("LM Studio, newer", 400, {"error": LM_STUDIO_N_KEEP}, 4096),
    ("LM Studio, in a stream", 0, {"error": {"message": LM_STUDIO_KEEP}}, 7866),
    ("vLLM", 400, {"object": "error", "message": VLLM, "type": "BadRequestError", "param": None, "code": 400}, 2048),
    ("vLLM, newer", 400, {"error": {"message": VLLM, "type": "BadRequestError", "code": 400}}, 2048),
    ("vLLM, no room", 400, {"object": "error", "message": "max_tokens must be at least 1, got -186.", "code": 400}, 0),
    (
        "OpenAI",
        400,
        {
            "error": {
                "message": OPENAI,
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
        8192,
    ),
    ("a proxy", 413, {"error": "Payload Too Large"}, 0),
    *((server, status, {"error": {"message": words}}, window) for server, status, words, window in WORDED),
]

OTHERS = [
    (
        "OpenAI, key",
        401,
        {"error": {"message": "Incorrect API key provided: sk-x", "code": "invalid_api_key"}},
        K.AUTH_EXPIRED,
    ),
    (
        "OpenAI, rate",
        429,
        {
            "error": {
                "message": "Rate limit reached for tokens per min. Limit: 8192 context length",
                "code": "rate_limit_exceeded",
            }
        },
        K.RATE_LIMITED,
    ),
    (
        "OpenAI, quota",
        429,
        {
            "error": {
                "message": "You exceeded your current quota, check your plan and billing details.",
                "type": "insufficient_quota",
                "code": "insufficient_quota",
            }
        },
        K.QUOTA_EXCEEDED,
    ),
    ("a gate, quota", 403, {"error": {"message": "Your quota is used up"}}, K.QUOTA_EXCEEDED),
    ("OpenAI, paid", 402, {"error": {"message": "Insufficient credits"}}, K.PAYMENT_REQUIRED),
    (
        "OpenAI, overload",
        503,
        {"error": {"message": "That model is currently overloaded", "type": "server_error"}},
        K.BACKEND_UNAVAILABLE,
    ),
    (
        "llama.cpp, loading",
        503,
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        K.BACKEND_UNAVAILABLE,
    ),
    (
        "Ollama, memory",
        500,
        {
            "error": {
                "message": "model requires more system memory (9.2 GiB) than is available",
                "type": "api_error",
                "param": None,
                "code": None,
            }
        },
        K.BACKEND_UNAVAILABLE,
    ),
    ("a page of HTML", 502, None, K.BACKEND_UNAVAILABLE),
    ("a gateway", 504, {}, K.BACKEND_UNAVAILABLE),
    ("a bad field", 422, {"detail": [{"msg": "extra fields not permitted"}]}, K.INVALID_REQUEST),
    ("an unknown refusal", 418, {"error": "teapot"}, K.PROVIDER_ERROR),
]

TOOLS = [
    (
        "Ollama",
        400,
        {
            "error": {
                "message": "registry.ollama.ai/library/dolphin-mistral:latest does not support tools",
                "type": "api_error",
                "param": None,
                "code": None,
            }
        },
    ),
    (
        "llama.cpp",
        500,
        {"error": {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}},
    ),
    (
        "llama.cpp, older",
        500,
        {"error": {"code": 500, "message": "Cannot use tools with stream", "type": "server_error"}},
    ),
    (
        "vLLM",
        400,
        {
            "object": "error",
            "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    *(
        (server, status, {"error": {"message": words}})
        for server, status, words in (
            ("Groq", 400, "`tool calling` is not supported with this model"),
            ("OpenRouter", 404, "No endpoints found that support tool use."),
            ("Gemini", 400, "Function calling is not enabled for models/gemma-3-27b-it"),
            ("a strict one", 400, "Unrecognized request argument supplied: tools"),
            ("another strict one", 400, "Unsupported parameter: 'tools' is not supported with this model."),
        )
    ),
]

MODELS = [
    ("Ollama", 404, {"error": {"message": 'model "mira" not found, try pulling it first', "type": "api_error"}}),
    (
        "LM Studio",
        400,
        {
            "error": {
                "message": "No models loaded. Please load a model in the developer page.",
                "type": "invalid_request_error",
                "param": "model",
                "code": "model_not_found",
            }
        },
    ),
    (
        "vLLM",
        404,
        {"object": "error", "message": "The model `mira` does not exist.", "type": "NotFoundError", "code": 404},
    ),
]


def told(status, body):
    if status == 0:
        return told_failure(body)
    return status_failure(status, b"<html>" if body is None else json.dumps(body).encode(), {})


@pytest.mark.parametrize(("server", "status", "body", "window"), OVERFLOWS)
def test_an_overflow_is_recognised_with_its_limit(server, status, body, window):
    failure = told(status, body)
    assert (failure.kind, failure.window) == (K.CONTEXT_LENGTH_EXCEEDED, window)


@pytest.mark.parametrize(("server", "status", "body", "kind"), OTHERS)
def test_other_failures_are_told_apart(server, status, body, kind):
    assert told(status, body).kind is kind


@pytest.mark.parametrize(("server", "status", "body"), TOOLS)
def test_a_model_without_tools_is_recognised(server, status, body):
    assert told(status, body).tools_refused


@pytest.mark.parametrize(("server", "status", "body"), MODELS)
def test_a_missing_model_is_recognised(server, status, body):
    assert told(status, body).model_missing


@pytest.mark.parametrize("body", [None, {"error": LM_STUDIO_KEEP}, OTHERS[0][2]])
def test_a_servers_own_words_are_never_passed_on(body):
    message = told(401, body).message
    assert "10136" not in message
    assert "sk-x" not in message


def test_an_answer_without_an_error_tells_none():
    assert [told_failure(value) for value in ({}, {"error": None}, {"choices": []}, {"error": ""})] == [None] * 4


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "2"}, 2_000),
        ({"retry-after-ms": "150", "retry-after": "9"}, 150),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_the_wait_of_a_server_is_read_where_it_is_a_number(headers, wait):
    assert retry_after(headers) == wait
