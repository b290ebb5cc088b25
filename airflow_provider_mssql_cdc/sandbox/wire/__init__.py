"""The wire: TDS 7.4 framing, login, TLS, requests in and tokens out; knows bytes, not SQL."""
