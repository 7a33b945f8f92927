"""Chat: the history of a conversation, the roles that talk in it, and the prompt that a model is sent.

It must never write while it builds a prompt, and never put anything of one player into the cacheable prefix.
"""
