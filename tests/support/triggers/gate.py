"""A TCP relay that can be shut, or hold back what it got."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class Gate:
    """Relays connections from a port of its own to a server.

    :param stall: accept connections but relay nothing until ``open``
    """

    def __init__(self, host: str, port: int, *, stall: bool = False) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._is_open = threading.Event()
        self._is_shut = False
        if not stall:
            self._is_open.set()
        self.stalled = False
        self._connected, self._refused = threading.Event(), threading.Event()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def open(self) -> None:
        """Relay from now on."""
        self._is_shut = False
        self._is_open.set()

    def shut(self) -> None:
        """Break all connections, and every new one at once."""
        self._is_shut = True
        self._refused.clear()
        self._break_all()

    def wait_for_connection(self) -> None:
        """Wait until a connection was relayed."""
        assert self._connected.wait(60)

    def wait_for_refusal(self) -> None:
        """Wait until a connection was broken at once."""
        assert self._refused.wait(60)

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open.set()
        self._listener.close()
        self._break_all()

    def _break_all(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_shut:
                client.close()
                self._refused.set()
                continue
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        if not self._is_open.is_set():
            self.stalled = True
            self._is_open.wait()
        with client, socket.create_connection(self._target) as server:
            self._sockets += [client, server]
            self._connected.set()
            back = threading.Thread(target=_pump, args=(server, client), daemon=True)
            back.start()
            _pump(client, server)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
