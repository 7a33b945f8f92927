"""Language-model servers: which there are, which role talks to which, and how to talk to one.

Nothing here knows of histories, prompts or gRPC, and no key is ever stored, logged or put into an error.
"""
