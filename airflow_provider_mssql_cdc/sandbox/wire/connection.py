"""One client connection: the handshake, and then request by request until it ends."""

from __future__ import annotations

import contextlib
import functools
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

from airflow_provider_mssql_cdc.sandbox.protocol import (
    Backend,
    ConnectionDropped,
    IsolationLevel,
    Login,
    Message,
    Outcome,
    Session,
    SqlError,
)
from airflow_provider_mssql_cdc.sandbox.wire import login, tokens
from airflow_provider_mssql_cdc.sandbox.wire.bulk import read_bulk_load
from airflow_provider_mssql_cdc.sandbox.wire.framing import (
    DEFAULT_PACKET_SIZE,
    Channel,
    ClientMessage,
    ConnectionLost,
    MessageType,
    MessageWriter,
    ProtocolError,
    Status,
    read_message,
)
from airflow_provider_mssql_cdc.sandbox.wire.login import Encryption, LoginRequest
from airflow_provider_mssql_cdc.sandbox.wire.parameters import read_calls, skip_headers
from airflow_provider_mssql_cdc.sandbox.wire.reader import Reader
from airflow_provider_mssql_cdc.sandbox.wire.reply import Interrupted, Reply, error_message
from airflow_provider_mssql_cdc.sandbox.wire.tokens import DoneStatus

logger = logging.getLogger(__name__)

_PRELOGIN_LIMIT = 64 * 1024
_LOGIN_LIMIT = 128 * 1024
_PACKETS_LIMIT = 65536
"""SQL Server takes this many packets as one batch (docs: maximum capacity specifications)."""

_LINGER_TIMEOUT, _LINGER_READS = 1.0, 64

_STREAM_INCORRECT = (
    "The incoming tabular data stream (TDS) protocol stream is incorrect. The stream ended unexpectedly."
)

_BEGIN, _COMMIT, _ROLLBACK, _SAVE = 5, 7, 8, 9
_BEGIN_AGAIN = 0x01


@dataclass(frozen=True, slots=True)
class Settings:
    """What all connections of a listener have in common."""

    backend: Backend
    tls: ssl.SSLContext
    force_encryption: bool
    login_timeout: float


class Connection:
    """Serves one client from its first byte to its last, in the thread that calls :meth:`serve`.

    :param spid: session id as it stands in the packet headers
    """

    def __init__(self, sock: socket.socket, settings: Settings, spid: int) -> None:
        self._socket, self._settings, self._spid = sock, settings, spid
        self._channel = Channel(sock)
        self._packet_size = DEFAULT_PACKET_SIZE
        self._session: Session | None = None
        self._lock = threading.Lock()
        self._running = False
        self._in_transaction = False

    def serve(self) -> None:
        """Serve the client until it leaves, breaks the protocol, or :meth:`abort` is called."""
        try:
            self._socket.settimeout(self._settings.login_timeout)
            session = self._log_in()
            if session is not None:
                self._socket.settimeout(None)
                self._serve_requests(session)
        except ProtocolError as error:
            logger.debug("connection %d ended: %s", self._spid, error)
        except Exception:
            logger.exception("connection %d failed", self._spid)
        finally:
            if self._session is not None:
                self._session.close()
            self._hang_up()

    def cancel_if_client_calls(self) -> None:
        """Cancel the running request if the client has sent something meanwhile; for another thread."""
        with self._lock:
            if self._running and self._session is not None and self._channel.has_input():
                self._session.cancel()

    def abort(self) -> None:
        """End the connection, for another thread; to be repeated until the thread that serves it has ended.

        A request that begins just now does not feel a cancel that came before it.
        """
        with self._lock:
            if self._session is not None:
                self._session.cancel()
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _hang_up(self) -> None:
        # A socket closed over unread bytes resets the connection, which may cost the client our last reply.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            self._socket.settimeout(_LINGER_TIMEOUT)
            for _ in range(_LINGER_READS):
                if not self._socket.recv(65536):
                    break
        self._socket.close()

    def _writer(self) -> MessageWriter:
        return MessageWriter(self._channel, self._packet_size, self._spid)

    def _reply(self) -> Reply:
        reply = Reply(self._writer(), self._settings.backend.server_name, self._channel.has_input)
        reply.in_transaction = self._in_transaction
        return reply

    def _log_in(self) -> Session | None:
        encryption = self._negotiate()
        message = self._expect(MessageType.LOGIN7, _LOGIN_LIMIT)
        if encryption is Encryption.OFF:
            self._channel.end_tls()
        reply = self._reply()
        try:
            request = login.parse_login(message.payload)
            self._session = self._open_session(request.login, reply)
        except SqlError as error:
            reply.message(error_message(error))
        if self._session is None:
            reply.finish()
            return None
        self._welcome(self._session, request, encryption)
        return self._session

    def _negotiate(self) -> Encryption:
        options = login.parse_prelogin(self._expect(MessageType.PRELOGIN, _PRELOGIN_LIMIT).payload)
        client = login.requested_encryption(options)
        encryption = login.negotiate(client, forced=self._settings.force_encryption)
        writer = self._writer()
        writer.write(login.prelogin_reply(options, self._settings.backend.version, encryption))
        writer.end()
        if client is Encryption.NOT_SUPPORTED and encryption is Encryption.REQUIRED:
            raise ProtocolError("the client does not encrypt, and the server requires it")
        if encryption is not Encryption.NOT_SUPPORTED:
            self._channel.start_tls(self._settings.tls)
        return encryption

    def _welcome(self, session: Session, request: LoginRequest, encryption: Encryption) -> None:
        packet_size = login.agreed_packet_size(request.packet_size, encryption)
        backend = self._settings.backend
        messages = (
            Message(5701, f"Changed database context to '{session.database}'.", severity=0, state=2),
            Message(5703, f"Changed language setting to {session.language}.", severity=0),
        )
        writer = self._writer()
        writer.write(tokens.login_environment(session.database, session.language, packet_size, DEFAULT_PACKET_SIZE))
        for item in messages:
            writer.write(tokens.message(item, backend.server_name))
        writer.write(tokens.login_ack(request.tds_version, backend.version))
        if request.feature_extension:
            writer.write(tokens.FEATURE_EXT_ACK_NONE)
        writer.write(tokens.done(tokens.Done.BATCH, DoneStatus.FINAL))
        writer.end()
        self._packet_size = packet_size

    def _open_session(self, request: Login, reply: Reply) -> Session | None:
        failed = Message(18456, f"Login failed for user '{request.user}'.", severity=14)
        try:
            return self._settings.backend.login(replace(request, hang_up=self.abort))
        except SqlError as error:
            if error.number != failed.number:
                reply.message(error_message(error))
            reply.message(failed)
        return None

    def _expect(self, kind: MessageType, limit: int) -> ClientMessage:
        message = read_message(self._channel, limit)
        if message.type is not kind:
            raise ProtocolError(f"{message.type.name} where {kind.name} was due")
        return message

    def _serve_requests(self, session: Session) -> None:
        limit = self._packet_size * _PACKETS_LIMIT
        fatal = False
        while not fatal:
            message = read_message(self._channel, limit, logged_in=True)
            reply = self._reply()
            if message.status & Status.IGNORE or message.type is MessageType.ATTENTION:
                session.discard_bulk()
                ignored = message.type is not MessageType.ATTENTION
                reply.finish(DoneStatus.ERROR if ignored else DoneStatus.ATTENTION)
                continue
            self._answer(session, message, reply)
            reply.finish()
            self._in_transaction, fatal = reply.in_transaction, reply.fatal

    def _answer(self, session: Session, message: ClientMessage, reply: Reply) -> None:
        if message.status & Status.RESET_CONNECTION:
            session.reset()
            reply.reset_done()
        try:
            if message.status & Status.RESET_CONNECTION_SKIP_TRAN:
                raise SqlError(50000, "The sandbox does not reset a connection and keep its transaction.")
            reader = Reader(message.payload)
            if message.type is MessageType.SQL_BATCH:
                self._batch(session, reader, reply)
            elif message.type is MessageType.RPC:
                self._calls(session, reader, reply)
            elif message.type is MessageType.TRANSACTION_MANAGER:
                self._transaction(session, reader, reply)
            elif message.type is MessageType.BULK_LOAD:
                self._run(session, reply, lambda: session.bulk(lambda: read_bulk_load(reader)))
            else:
                raise ProtocolError(f"{message.type.name} after login")
        except SqlError as error:
            reply.message(error_message(error))
        except Interrupted:
            # The attention itself is read next, and gets a message of its own: mssql-jdbc waits for both.
            reply.abandon()
        except ConnectionLost:
            raise
        except ProtocolError as error:
            logger.debug("connection %d: %s", self._spid, error)
            reply.message(Message(4002, _STREAM_INCORRECT))
            reply.fatal = True

    def _batch(self, session: Session, reader: Reader, reply: Reply) -> None:
        skip_headers(reader)
        if reader.remaining % 2:
            raise ProtocolError("a batch of half a character")
        text = reader.text(reader.remaining // 2)
        self._run(session, reply, lambda: session.batch(text))

    def _calls(self, session: Session, reader: Reader, reply: Reply) -> None:
        skip_headers(reader)
        for call in read_calls(reader):
            reply.start_call()
            self._run(session, reply, functools.partial(session.rpc, call.procedure, call.parameters))
            reply.end_call()

    def _transaction(self, session: Session, reader: Reader, reply: Reply) -> None:
        skip_headers(reader)
        kind = reader.u16()
        if kind == _BEGIN:
            self._begin(session, reader, reply)
        elif kind in (_COMMIT, _ROLLBACK):
            name, flags = reader.b_varchar(), reader.u8()
            end = session.commit if kind == _COMMIT else session.rollback
            self._run(session, reply, lambda: end(name))
            if flags & _BEGIN_AGAIN and not reply.failed:
                self._begin(session, reader, reply)
        elif kind == _SAVE:
            name = reader.b_varchar()
            self._run(session, reply, lambda: session.save(name))
        else:
            raise SqlError(50000, f"The sandbox does not support the transaction manager request {kind}.")

    def _begin(self, session: Session, reader: Reader, reply: Reply) -> None:
        try:
            isolation = IsolationLevel(reader.u8())
        except ValueError as error:
            raise ProtocolError(str(error)) from None
        name = reader.b_varchar()
        self._run(session, reply, lambda: session.begin(isolation, name))

    def _run(self, session: Session, reply: Reply, start: Callable[[], Iterator[Outcome]]) -> None:
        with self._lock:
            self._running = True
        outcomes: Iterator[Outcome] = iter(())
        try:
            outcomes = start()
            for outcome in outcomes:
                reply.add(outcome)
        except SqlError as error:
            reply.message(error_message(error))
        except Interrupted:
            session.cancel()
            raise
        except ConnectionDropped:
            reply.flush()
            raise ConnectionLost("dropped by a fault that was asked for") from None
        except ProtocolError:
            raise
        except Exception as fault:
            logger.exception("fault of the sandbox")
            reply.message(Message(50000, f"{type(fault).__name__}: {fault}"))
        finally:
            if isinstance(outcomes, Generator):
                outcomes.close()
            with self._lock:
                self._running = False
