"""Serving other machines: only on an address of its own, only encrypted, and never instead of loopback."""

from __future__ import annotations

import grpc
import pytest
import trustme
from client import failure

from sidecar.gen.lorekeeper.v1 import system_pb2, system_pb2_grpc


@pytest.fixture
def listening(start_daemon, tmp_path):
    """A daemon that listens with TLS as well, and the certificate of who vouches for it."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "chain.pem"))
    files = ["--tls-cert", str(tmp_path / "chain.pem"), "--tls-key", str(tmp_path / "key.pem")]
    return start_daemon("--listen", "127.0.0.2", *files), authority.cert_pem.bytes()


def test_another_machine_calls_encrypted_and_with_the_token(listening):
    daemon, authority = listening
    options = (("grpc.ssl_target_name_override", "localhost"),)
    with grpc.secure_channel(
        daemon.handshake["tls_address"], grpc.ssl_channel_credentials(authority), options=options
    ) as channel:
        system = system_pb2_grpc.SystemServiceStub(channel)
        request = system_pb2.GetInfoRequest()
        assert failure(lambda: system.GetInfo(request, timeout=10)).code.name == "UNAUTHENTICATED"
        told = system.GetInfo(request, metadata=(("authorization", f"Bearer {daemon.token}"),), timeout=10)
        assert told.pid == daemon.pid


def test_this_machine_has_loopback_all_the_same(listening):
    daemon, _ = listening
    assert daemon.address.startswith("127.0.0.1:")
    assert daemon.client.system.GetInfo(system_pb2.GetInfoRequest()).pid == daemon.pid


def test_a_second_start_attaches(listening, make_daemon):
    daemon, _ = listening
    second = make_daemon(folder=daemon.folder).start()
    assert (second.handshake["reused"], second.handshake["address"]) == (True, daemon.address)
    assert second.wait() == 0
