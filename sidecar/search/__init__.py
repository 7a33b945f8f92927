"""Search: terms, word and vector recall, fusion, rerank, and the derived index that they read.

The rules here are plain functions over numbers and texts. Nothing in this room owns a memory: what it stores can be
built again from the records.
"""
