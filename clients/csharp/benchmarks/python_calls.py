"""Makes calls from Python, for a comparison with C# in one run: reads rounds from standard input, answers with times.

Each line of input is a number of calls; each line of output holds the milliseconds of every call. The address and the
token come as environment variables, so that the token stands in no argument.
"""

from __future__ import annotations

import os
import sys
import time

import grpc

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, memory_pb2_grpc


def main() -> None:
    channel = grpc.insecure_channel(os.environ["LORE_ADDRESS"], options=[("grpc.enable_http_proxy", 0)])
    stub = memory_pb2_grpc.MemoryServiceStub(channel)
    metadata = [("authorization", f"Bearer {os.environ['LORE_TOKEN']}")]
    request = memory_pb2.GetDocumentRequest(actor=common_pb2.Actor(save_id="bench", actor_id="mira"))
    for line in sys.stdin:
        print(" ".join(str(_milliseconds(stub, request, metadata)) for _ in range(int(line))), flush=True)


def _milliseconds(
    stub: memory_pb2_grpc.MemoryServiceStub,
    request: memory_pb2.GetDocumentRequest,
    metadata: list[tuple[str, str]],
) -> float:
    start = time.perf_counter()
    stub.GetDocument(request, metadata=metadata)
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
