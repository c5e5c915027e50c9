"""An authority of a test's own, and the files of a server that it certifies."""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path

import trustme

from svc.http.server.listening import read_certificate


class Files:
    """An authority, and the two files of a server that it has certified for localhost."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.certfile = folder / "certificate.pem"
        self.keyfile = folder / "key.pem"
        self.issue()

    def issue(self, **fields: dt.datetime) -> None:
        issued = self.authority.issue_cert("localhost", **fields)  # type: ignore[arg-type]
        self.certfile.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        self.keyfile.write_bytes(issued.private_key_pem.bytes())

    def client(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context

    def serving(self) -> ssl.SSLContext:
        return read_certificate(self.certfile, self.keyfile).context

    def leaf(self) -> bytes:
        """What a client is shown, as DER."""
        mark = "-----END CERTIFICATE-----\n"
        return ssl.PEM_cert_to_DER_cert(self.certfile.read_text().partition(mark)[0] + mark)

    def combined(self) -> Path:
        """Both in one file, as HAProxy wants them."""
        file = self.certfile.with_name("combined.pem")
        file.write_bytes(self.certfile.read_bytes() + self.keyfile.read_bytes())
        return file
