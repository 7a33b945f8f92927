"""The closed lists of reasons and diagnostics, and the pages that explain them."""

import re
from pathlib import Path

import sidecar
from sidecar.errors import LorekeeperError, Reason

ROOT = Path(__file__).parents[2]
SOURCE = "\n".join(
    path.read_text("utf-8") for path in Path(sidecar.__file__).parent.rglob("*.py") if "gen" not in path.parts
)


def first_column(page: str) -> set[str]:
    return set(re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE))


def test_every_reason_is_documented_and_no_other():
    assert first_column("errors.md") == {str(reason) for reason in Reason}


def test_every_reason_is_raised_somewhere():
    assert [reason for reason in Reason if not re.search(rf"Reason\.{reason}\b", SOURCE)] == []


def test_every_diagnostic_is_documented_and_no_other():
    codes = set(re.findall(r'Diagnostic\(\s*"(\w+)"', SOURCE)) | set(re.findall(r'code, \w+ = \("(\w+)"', SOURCE))
    assert first_column("diagnostics.md") >= codes


def test_every_error_has_a_status_that_grpc_knows():
    import grpc

    assert all(hasattr(grpc.StatusCode, error.code) for error in [LorekeeperError, *LorekeeperError.__subclasses__()])
