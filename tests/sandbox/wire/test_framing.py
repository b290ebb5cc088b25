"""How messages are cut into packets."""

from __future__ import annotations

import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_mssql_cdc.sandbox.wire.framing import Channel, MessageWriter


@pytest.mark.parametrize("size", [0, 1, 503, 504, 505, 1008, 200_000, 504 * 500])
def test_a_message_ends_with_a_packet_that_is_not_empty(size: int) -> None:
    payload = bytes(place % 251 for place in range(size))
    writing, reading = socket.socketpair()
    # Read beside the writing: the socket's buffer need not hold it all.
    with writing, reading, reading.makefile("rb") as stream, ThreadPoolExecutor(1) as pool:
        received = pool.submit(stream.read)
        writer = MessageWriter(Channel(writing), packet_size=512, spid=77)
        for start in range(0, size, 50_000):
            writer.write(payload[start : start + 50_000])
        writer.end()
        writing.shutdown(socket.SHUT_WR)
        sent = received.result()
    packets = []
    while sent:
        kind, status, length, spid, number, window = struct.unpack_from(">BBHHBB", sent)
        assert (kind, spid, number, window) == (4, 77, (len(packets) + 1) & 0xFF, 0)
        packets.append((status, sent[8:length]))
        sent = sent[length:]
    assert b"".join(data for _, data in packets) == payload
    assert [status for status, _ in packets] == [0] * (len(packets) - 1) + [1]
    assert all(len(data) == 504 for _, data in packets[:-1])
    assert packets[-1][1] or not size
