"""A certificate authority and a server certificate, made at each start, and the TLS settings for TDS 7.4."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALIDITY = datetime.timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The authority's certificate and what the server shows; all PEM."""

    authority: bytes
    certificate: bytes
    private_key: bytes


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # A client's clock may be behind.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def make_credentials(host: str) -> Credentials:
    """Make an authority and a certificate it signed, good for localhost, the loopback addresses and ``host``.

    Two certificates rather than a self-signed one: Go's clients refuse an authority as a server certificate.
    """
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("mssql-cdc sandbox CA")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(_name("localhost"), authority_name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_alternative_names(host)), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return Credentials(
        authority=authority.public_bytes(serialization.Encoding.PEM),
        certificate=certificate.public_bytes(serialization.Encoding.PEM),
        private_key=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _alternative_names(host: str) -> list[x509.GeneralName]:
    addresses = [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    names = ["localhost"]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if host not in names:
            names.append(host)
    else:
        if address not in addresses:
            addresses.append(address)
    return [*(x509.DNSName(name) for name in names), *(x509.IPAddress(address) for address in addresses)]


def server_context(credentials: Credentials) -> ssl.SSLContext:
    """TLS 1.2 and nothing newer: inside TDS 7.4 the session tickets of TLS 1.3 make several clients hang."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-") as folder:
        # The ssl module takes keys from files only; the folder is the owner's alone, and gone in a moment.
        path = Path(folder, "server.pem")
        path.write_bytes(credentials.private_key + credentials.certificate + credentials.authority)
        context.load_cert_chain(path)
    return context
