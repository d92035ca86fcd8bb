"""The web server's process: `web.py ADDRESS PORT TLS_PORT FOLDER CERTIFICATE`: files below FOLDER, over HTTP and HTTPS.

It knows HEAD, ETag, Range and If-Range, as servers of large files do.
"""

from __future__ import annotations

import ctypes
import http.server
import re
import shutil
import ssl
import sys
import threading
from pathlib import Path
from typing import IO

NAME = "lab-web"


class Handler(http.server.BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    folder = Path()

    def do_HEAD(self) -> None:
        """Tell of a file."""
        if found := self._begin():
            found.close()

    def do_GET(self) -> None:
        """Give a file, or what is left of it."""
        if found := self._begin():
            with found:
                shutil.copyfileobj(found, self.wfile)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """The log is the lab's."""
        sys.stderr.write(f"{self.requestline} {format % args}\n")

    def _begin(self) -> IO[bytes] | None:
        path = self.folder / self.path.lstrip("/")
        if ".." in path.parts or not path.is_file():
            self.send_error(404)
            return None
        facts = path.stat()
        etag = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
        wanted = re.fullmatch(r"bytes=(\d+)-\d*", self.headers.get("Range", ""))
        begin = int(wanted[1]) if wanted and self.headers.get("If-Range", etag) == etag else 0
        self.send_response(206 if begin else 200)
        self.send_header("ETag", etag)
        self.send_header("Accept-Ranges", "bytes")
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{facts.st_size - 1}/{facts.st_size}")
        self.send_header("Content-Length", str(max(0, facts.st_size - begin)))
        self.end_headers()
        file = path.open("rb")
        file.seek(begin)
        return file


def main(address: str, port: int, tls_port: int, folder: Path, certificate: Path) -> None:
    """Serve until the end of the process."""
    ctypes.CDLL(None).prctl(15, NAME.encode(), 0, 0, 0)  # see server.py
    Handler.folder = folder
    plain = http.server.ThreadingHTTPServer((address, port), Handler)
    secure = http.server.ThreadingHTTPServer((address, tls_port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    secure.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), Path(sys.argv[5]))
