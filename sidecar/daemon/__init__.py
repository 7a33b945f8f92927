"""The process: configuration, lock, handshake, life and end, and the gRPC edge around the rooms below."""
