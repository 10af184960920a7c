"""A server of objects for tests, which answers ranges, and misbehaves when it is told to."""

import email.utils
import hashlib
import http.server
import pathlib
import re
import socket
import struct
import threading
import urllib.parse
from collections import Counter
from typing import ClassVar


class ObjectServer:
    """Serves the files of a folder over HTTP/1.1 on a port of this machine; in "bucket", too.

    `fault(path, first, tried)` is asked before each answer, with the first byte wanted and how often this
    range was tried before; it returns None or the name of a fault of `Handler.FAULTS`. `tls`: an SSLContext.
    """

    def __init__(self, folder, tls=None):
        self.folder = pathlib.Path(folder)
        self.fault = lambda path, first, tried: None
        self.tried = Counter()  # by (path, first byte)
        self.answered = Counter()  # the same, without faults
        self.headers, self.targets = [], []  # of all requests
        self.expired_key = None  # an id of AWS credentials that are refused
        self.etag = None  # None: a hash of the content; "nginx": as that server makes it
        self.dated = True  # whether answers have Last-Modified
        self.released = threading.Event()  # ends all stalls
        self.lock = threading.Lock()
        handler = type("Handler", (Handler,), {"objects": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *unused: None  # clients may go at any time
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.released.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects = None  # the ObjectServer

    def log_message(self, *unused):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        objects = self.objects
        path = urllib.parse.unquote(self.path.split("?")[0]).lstrip("/").removeprefix("bucket/")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first = int(wanted[1]) if wanted else 0
        with objects.lock:
            objects.headers.append(dict(self.headers))
            objects.targets.append(self.path)
            tried = objects.tried[path, first]
            objects.tried[path, first] += 1
        file = objects.folder / path
        if not file.is_file():
            return self.answer(404, b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>")
        self.data = file.read_bytes()
        self.etag = objects.etag or f'"{hashlib.sha256(self.data).hexdigest()[:16]}"'
        if objects.etag == "nginx":
            self.etag = f'"{int(file.stat().st_mtime):x}-{len(self.data):x}"'
        if self.headers.get("If-Match", self.etag) != self.etag:
            return self.answer(412)
        modified = email.utils.formatdate(file.stat().st_mtime, usegmt=True)
        self.date = {"Last-Modified": modified} if objects.dated else {}
        if objects.etag != "nginx":
            self.date["x-amz-request-id"] = "1"  # as a store sends it, whose ETags name content
        self.first, self.end = first, len(self.data)
        if wanted:
            if first >= len(self.data):
                return self.answer(416, Content_Range=f"bytes */{len(self.data)}")
            self.end = min(int(wanted[2] or self.end - 1) + 1, self.end)
        fault = objects.fault(path, first, tried)
        if f"Credential={objects.expired_key}/" in self.headers.get("authorization", ""):
            fault = "expired"
        if fault is not None:
            return self.FAULTS[fault](self)
        with objects.lock:
            objects.answered[path, first] += 1
        if not wanted:
            return self.answer(200, self.data, ETag=self.etag, **self.date)
        self.part(self.data[self.first : self.end])

    def part(self, body, first=None, length=None):
        first = self.first if first is None else first
        self.send_response(206)
        self.send_header("ETag", self.etag)
        for name, value in self.date.items():
            self.send_header(name, value)
        last = first + self.end - self.first - 1
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(self.data)}")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def half(self):
        return self.data[self.first : (self.first + self.end) // 2]

    def reset(self):
        """Sends half of the body and resets the connection."""
        self.part(self.half(), length=self.end - self.first)
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def cut(self):
        """Sends half of the body and closes the connection."""
        self.part(self.half(), length=self.end - self.first)
        self.close_connection = True

    def stall(self):
        """Sends half of the body, and nothing until the test is over."""
        self.part(self.half(), length=self.end - self.first)
        self.wfile.flush()
        self.objects.released.wait()
        self.close_connection = True

    def slow(self):
        """Sends the body in ten parts, with pauses."""
        self.part(b"", length=self.end - self.first)
        for i in range(10):
            begin, end = [self.first + (self.end - self.first) * part // 10 for part in (i, i + 1)]
            self.wfile.write(self.data[begin:end])
            self.wfile.flush()
            self.objects.released.wait(0.005)

    def wrong_length(self):
        self.part(self.half())

    def wrong_range(self):
        self.part(self.data[self.first : self.end], first=self.first + 1)

    def whole(self):
        self.answer(200, self.data, ETag=self.etag)

    def expired(self):
        body = b"<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>"
        self.answer(400, body)

    FAULTS: ClassVar = {
        "reset": reset,
        "cut": cut,
        "stall": stall,
        "slow": slow,
        "wrong length": wrong_length,
        "wrong range": wrong_range,
        "whole": whole,
        "expired": expired,
        "500": lambda self: self.answer(500, b"oops"),
        "503": lambda self: self.answer(503, b"<Error><Code>SlowDown</Code></Error>"),
        "429": lambda self: self.answer(429, Retry_After="1"),
        "403": lambda self: self.answer(403, b"<Error><Code>AccessDenied</Code></Error>"),
    }
