"""A relay between a client and a server that keeps what passes through, to see what is encrypted."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class Relay:
    """Listens on a free port, and hands each connection on.

    :param port: the server's port on this machine
    :param at: the port to listen on; 0 for a free one
    """

    def __init__(self, port: int, at: int = 0) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", at))
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self.port: int = self._listener.getsockname()[1]
        self.requests, self.replies = bytearray(), bytearray()

    def __enter__(self) -> Relay:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [client, server]
                for source, sink, kept in ((client, server, self.requests), (server, client, self.replies)):
                    thread = threading.Thread(target=_pump, args=(source, sink, kept), daemon=True)
                    self._threads.append(thread)
                    thread.start()


def _pump(source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            kept += data
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
