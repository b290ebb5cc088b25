"""PRELOGIN and LOGIN7: what the client says before its first request, and what it is told."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.protocol import Login, SqlError
from airflow_provider_mssql_cdc.sandbox.wire.framing import DEFAULT_PACKET_SIZE, ProtocolError

TDS_7_3, TDS_7_4 = 0x730A0003, 0x74000004

_INTEGRATED_LOGIN_FAILED = (
    "Login failed. The login is from an untrusted domain and cannot be used with Integrated authentication."
)

# docs: network packet size option; encrypted connections have a lower limit.
_MIN_PACKET_SIZE, _MAX_PACKET_SIZE, _MAX_ENCRYPTED_PACKET_SIZE = 512, 32767, 16383

_OPTION = struct.Struct(">BHH")
_TERMINATOR = 0xFF
_FIXED_PART = 94
_FEATURE_FEDERATED_AUTHENTICATION = 0x02


class Encryption(enum.IntEnum):
    """What one side says about TLS in PRELOGIN."""

    OFF = 0  # the login message only
    ON = 1
    NOT_SUPPORTED = 2
    REQUIRED = 3


class _PreloginOption(enum.IntEnum):
    VERSION = 0
    ENCRYPTION = 1
    INSTANCE = 2
    THREAD_ID = 3
    MARS = 4
    FEDERATED_AUTHENTICATION = 6


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """A LOGIN7 message.

    :param packet_size: as asked for; 0 leaves it to the server
    """

    login: Login
    tds_version: int
    packet_size: int
    feature_extension: bool


def parse_prelogin(payload: bytes) -> dict[int, bytes]:
    """Read the options of a PRELOGIN message: their data by token.

    :raises ProtocolError: if an option lies outside the message
    """
    options: dict[int, bytes] = {}
    position = 0
    while position < len(payload) and payload[position] != _TERMINATOR:
        if position + _OPTION.size > len(payload):
            raise ProtocolError("PRELOGIN ends inside its option list")
        token, offset, length = _OPTION.unpack_from(payload, position)
        if offset + length > len(payload):
            raise ProtocolError(f"PRELOGIN option {token} lies outside the message")
        options[token] = payload[offset : offset + length]
        position += _OPTION.size
    return options


def requested_encryption(options: dict[int, bytes]) -> Encryption:
    """What the client asks for; OFF where it says nothing.

    :raises ProtocolError: if it asks for something that TDS 7.4 does not know
    """
    # The upper bits speak of client certificates, which are for the server to ask for.
    value = options.get(_PreloginOption.ENCRYPTION, b"\0")[:1]
    try:
        return Encryption(value[0] & 0x0F)
    except (IndexError, ValueError):
        raise ProtocolError("PRELOGIN asks for an unknown kind of encryption") from None


def negotiate(client: Encryption, *, forced: bool) -> Encryption:
    """The server's answer (docs: MS-TDS 2.2.6.5): OFF is TLS for the login, NOT_SUPPORTED none at all."""
    if client is Encryption.NOT_SUPPORTED:
        return Encryption.REQUIRED if forced else Encryption.NOT_SUPPORTED
    if client is Encryption.OFF:
        return Encryption.REQUIRED if forced else Encryption.OFF
    return Encryption.ON


def prelogin_reply(client: dict[int, bytes], version: tuple[int, int, int], encryption: Encryption) -> bytes:
    """The PRELOGIN message of a server without named instances and without MARS."""
    major, minor, build = version
    answers: dict[int, bytes] = {
        _PreloginOption.VERSION: struct.pack(">BBHH", major, minor, build, 0),
        _PreloginOption.ENCRYPTION: bytes([encryption]),
        _PreloginOption.INSTANCE: b"\0",
        _PreloginOption.THREAD_ID: b"",
        _PreloginOption.MARS: b"\0",
    }
    if _PreloginOption.FEDERATED_AUTHENTICATION in client:
        answers[_PreloginOption.FEDERATED_AUTHENTICATION] = b"\0"
    offset = len(answers) * _OPTION.size + 1
    head, body = bytearray(), bytearray()
    for token, data in answers.items():
        head += _OPTION.pack(token, offset + len(body), len(data))
        body += data
    return bytes(head) + bytes([_TERMINATOR]) + bytes(body)


def parse_login(payload: bytes) -> LoginRequest:
    """Read a LOGIN7 message.

    :raises ProtocolError: if it is not well formed
    :raises SqlError: if it asks for a kind of login that the sandbox does not have
    """
    if len(payload) < _FIXED_PART:
        raise ProtocolError(f"LOGIN7 of {len(payload)} bytes")
    length, version, packet_size = struct.unpack_from("<III", payload)
    if not _FIXED_PART <= length <= len(payload):
        raise ProtocolError(f"LOGIN7 says it has {length} bytes, and has {len(payload)}")
    _, flags2, type_flags, flags3 = payload[24:28]
    if version < TDS_7_3:
        spoken = f"{version >> 28}.{version >> 24 & 0xF}"
        raise SqlError(50000, f"The sandbox speaks TDS 7.3 and 7.4, not {spoken}.", severity=20)
    if flags2 & 0x80:
        raise SqlError(18452, _INTEGRATED_LOGIN_FAILED, severity=14)
    if flags3 & 0x01:
        raise SqlError(50000, "The sandbox does not change passwords at login.", severity=14)
    features = _features(payload) if flags3 & 0x10 else []
    if _FEATURE_FEDERATED_AUTHENTICATION in features:
        raise SqlError(50000, "The sandbox takes a user and a password, no access token.", severity=14)
    login = Login(
        user=_field(payload, 40).decode("utf-16-le", "replace"),
        password=_clear_password(_field(payload, 44)),
        database=_field(payload, 68).decode("utf-16-le", "replace"),
        app_name=_field(payload, 48).decode("utf-16-le", "replace"),
        host_name=_field(payload, 36).decode("utf-16-le", "replace"),
        read_only=bool(type_flags & 0x20),
        language=_field(payload, 64).decode("utf-16-le", "replace"),
    )
    return LoginRequest(login, min(version, TDS_7_4), packet_size, bool(flags3 & 0x10))


def agreed_packet_size(requested: int, encryption: Encryption) -> int:
    """The packet size that holds from the end of the login on, in bytes with the header."""
    encrypted = encryption in (Encryption.ON, Encryption.REQUIRED)
    largest = _MAX_ENCRYPTED_PACKET_SIZE if encrypted else _MAX_PACKET_SIZE
    return max(_MIN_PACKET_SIZE, min(requested or DEFAULT_PACKET_SIZE, largest))


def _field(payload: bytes, at: int) -> bytes:
    offset, units = struct.unpack_from("<HH", payload, at)
    if offset + 2 * units > len(payload):
        raise ProtocolError(f"LOGIN7 field at {at} lies outside the message")
    return payload[offset : offset + 2 * units]


def _clear_password(hidden: bytes) -> str:
    # Each byte was turned round by its halves and then XORed with 0xA5 (docs: MS-TDS 2.2.6.4).
    clear = bytes((byte ^ 0xA5) << 4 & 0xF0 | (byte ^ 0xA5) >> 4 for byte in hidden)
    return clear.decode("utf-16-le", "replace")


def _features(payload: bytes) -> list[int]:
    (pointer,) = struct.unpack_from("<H", payload, 56)
    if pointer + 4 > len(payload):
        raise ProtocolError("LOGIN7 feature extension lies outside the message")
    (position,) = struct.unpack_from("<I", payload, pointer)
    features = []
    while position < len(payload) and payload[position] != _TERMINATOR:
        if position + 5 > len(payload):
            raise ProtocolError("LOGIN7 ends inside its feature list")
        features.append(payload[position])
        position += 5 + struct.unpack_from("<I", payload, position + 1)[0]
    return features
