"""Servers of the files of a folder, in a thread of this process: a web server, and an object store with buckets."""

import hashlib
import threading
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class Files(BaseHTTPRequestHandler):
    """Files by path, whole or in ranges; a folder is a page of links."""

    protocol_version = "HTTP/1.1"

    @property
    def path_in_folder(self):
        return self.server.folder / unquote(urlsplit(self.path).path).strip("/")

    def do_HEAD(self):
        self._file()

    def do_GET(self):
        if self.path_in_folder.is_dir():
            self._folder()
        else:
            self._file()

    def _folder(self):
        names = sorted(path.name for path in self.path_in_folder.iterdir())
        self._reply(200, "".join(f'<a href="{name}">{name}</a>' for name in names).encode(), {})

    def _file(self):
        path = self.path_in_folder
        if not path.is_file():
            self._reply(404, b"", {})
            return
        content, status = path.read_bytes(), 200
        headers = {
            "ETag": f'"{hashlib.md5(content).hexdigest()}"',
            "Accept-Ranges": "bytes",
            "Last-Modified": formatdate(path.stat().st_mtime, usegmt=True),
        }
        if (wanted := self.headers.get("Range")) is not None and self.command == "GET":
            self.server.ranges.append((path.name, wanted))
            first, last = wanted.removeprefix("bytes=").split("-")
            start, stop = int(first), min(int(last) + 1 if last else len(content), len(content))
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
            content, status = content[start:stop], 206
        self._reply(status, content, headers)

    def _reply(self, status, content, headers):
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *args):
        pass


class Objects(Files):
    """The part of the interface of S3 that reads: objects, and lists of them; a bucket is a folder."""

    def _folder(self):
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        bucket, prefix = self.path_in_folder, query.get("prefix", "")
        files = {path.relative_to(bucket).as_posix(): path for path in bucket.rglob("*") if path.is_file()}
        keys = [key for key in sorted(files) if key.startswith(prefix)]
        folders = set()
        if query.get("delimiter"):
            folders = {prefix + key[len(prefix) :].partition("/")[0] + "/" for key in keys if "/" in key[len(prefix) :]}
            keys = [key for key in keys if "/" not in key[len(prefix) :]]
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{files[key].stat().st_size}</Size>"
            f"<LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>{files[key].stat().st_mtime_ns}</ETag></Contents>"
            for key in keys
        )
        contents += "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders)
        page = f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
        self._reply(200, page.encode(), {"Content-Type": "application/xml"})


@contextmanager
def serving(folder, handler=Files):
    """Context with a server of the files in `folder`; `url` is its address, `ranges` are the ranges that were read."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.folder, server.ranges, server.daemon_threads = folder, [], True
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
