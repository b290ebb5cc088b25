"""The listener: accepts connections, gives each a thread, and looks after attentions while requests run."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Literal

from airflow_provider_mssql_cdc.sandbox.protocol import Backend
from airflow_provider_mssql_cdc.sandbox.wire.connection import Connection, Settings
from airflow_provider_mssql_cdc.sandbox.wire.tls import make_credentials

logger = logging.getLogger(__name__)

_TICK = 0.02
_FIRST_SPID, _LAST_SPID = 51, 32767


class TdsServer:
    """Serves a backend over TDS 7.3 and 7.4.

    :param backend: logs clients in and answers their requests
    :param host: address to listen on
    :param port: 0 for a free one, which :attr:`port` names after the start
    :param encryption: ``off`` encrypts the login, and the rest if the client asks for it; ``on`` encrypts all
    :param login_timeout: seconds that a client has for each step until it is logged in
    """

    def __init__(
        self,
        backend: Backend,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        encryption: Literal["off", "on"] = "off",
        login_timeout: float = 15.0,
    ) -> None:
        if encryption not in ("off", "on"):
            raise ValueError(f"encryption is 'off' or 'on', not {encryption!r}")
        self.host, self.port = host, port
        self._backend, self._encryption, self._login_timeout = backend, encryption, login_timeout
        self._stopping = threading.Event()
        self._connections: dict[Connection, threading.Thread] = {}
        self._thread: threading.Thread | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> TdsServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def authority_path(self) -> Path:
        """The PEM file of the authority that signed the certificate; there while the server runs.

        :raises RuntimeError: if it does not run
        """
        if self._folder is None:
            raise RuntimeError("the server is not running")
        return Path(self._folder.name, "ca.pem")

    @property
    def running(self) -> bool:
        """Whether it listens."""
        return self._thread is not None

    def start(self) -> None:
        """Listen, and serve in threads of its own until :meth:`stop`.

        :raises OSError: if the address cannot be listened on; the text names host and port
        :raises RuntimeError: if it runs already
        """
        if self._thread is not None:
            raise RuntimeError("the server is running already")
        listening = self._listen()
        authority, context = make_credentials(self.host)
        self._folder = tempfile.TemporaryDirectory(prefix="mssql-cdc-sandbox-")
        self.authority_path.write_bytes(authority)
        settings = Settings(self._backend, context, self._encryption == "on", self._login_timeout)
        self._stopping.clear()
        self._thread = threading.Thread(
            target=self._accept, args=(listening, settings), name=f"tds-{self.port}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End all connections, and return once their threads have ended; nothing if it does not run."""
        if self._thread is None:
            return
        self._stopping.set()
        self._thread.join()
        self._thread = None
        for connection, thread in self._connections.items():
            while thread.is_alive():
                connection.abort()
                thread.join(_TICK)
        self._connections.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            # Connections of a server just stopped would otherwise hold the port for a minute.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.host, self.port))
            listening.listen(128)
        except OSError as error:
            listening.close()
            reason = "is in use" if error.errno == errno.EADDRINUSE else str(error.strerror)
            raise OSError(error.errno, f"port {self.port} on {self.host}: {reason}") from error
        self.port = listening.getsockname()[1]
        listening.settimeout(_TICK)
        return listening

    def _accept(self, listening: socket.socket, settings: Settings) -> None:
        spid = _FIRST_SPID
        with listening:
            while not self._stopping.is_set():
                with contextlib.suppress(TimeoutError):
                    self._serve(listening.accept()[0], settings, spid)
                    spid = spid + 1 if spid < _LAST_SPID else _FIRST_SPID
                self._look_after_connections()

    def _serve(self, client: socket.socket, settings: Settings, spid: int) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(client, settings, spid)
        thread = threading.Thread(target=connection.serve, name=f"tds-{self.port}-{spid}", daemon=True)
        self._connections[connection] = thread
        thread.start()

    def _look_after_connections(self) -> None:
        """Forget those that have ended, and cancel what runs for a client that has spoken again.

        A session may be waiting, for a lock or by WAITFOR; its own thread cannot see the attention then.
        """
        for connection, thread in list(self._connections.items()):
            if thread.is_alive():
                connection.cancel_if_client_calls()
            else:
                del self._connections[connection]
