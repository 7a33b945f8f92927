"""The one door to ONNX Runtime: its reports to its maker are switched off before it is imported.

From 1.32 on it otherwise keeps a database in the user's cache folder and sends usage events from threads of its own.
"""

from __future__ import annotations

import os
from typing import Any


def onnx_runtime() -> Any:
    """The module. Raises ImportError where it is not installed."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    return onnxruntime
