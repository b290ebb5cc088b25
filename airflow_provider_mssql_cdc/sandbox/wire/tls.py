"""The certificates that a server makes at each start, and the TLS settings for TDS 7.4."""

from __future__ import annotations

import ssl

import trustme


def make_credentials(host: str) -> tuple[bytes, ssl.SSLContext]:
    """The PEM of an authority, and the settings with a certificate it signed: for localhost, the loopback addresses
    and ``host``.

    TLS 1.2 and nothing newer: inside TDS 7.4 the session tickets of TLS 1.3 make several clients hang. An authority
    rather than a self-signed certificate: Go's clients refuse an authority as a server certificate.
    """
    authority = trustme.CA(organization_name="mssql-cdc sandbox")
    names = dict.fromkeys(["localhost", "127.0.0.1", "::1", host])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    authority.issue_cert(*names, common_name="localhost").configure_cert(context)
    return authority.cert_pem.bytes(), context
