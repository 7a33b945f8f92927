"""Turns text into vectors: local ONNX models or a server, bounded, honest about cuts, one identity a model.

It knows nothing of records or owners, never logs or counts a text, never downloads anything, and never lets two
models' vectors meet. NumPy, ONNX Runtime, the tokenizers and the HTTP client are imported when a model is loaded.
"""
