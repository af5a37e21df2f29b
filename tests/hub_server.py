"""A stand-in for the model hub on 127.0.0.1: as much of its protocol as huggingface_hub uses, and its faults."""

import hashlib
import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote

TOKEN = "hf_a-token-that-accepted-the-terms"


@dataclass
class Repo:
    """A model's files at one commit. A gated one is served to those who send TOKEN."""

    files: dict[str, bytes]
    commit: str
    gated: bool = False
    public: tuple[str, ...] = ()  # files of a gated repo that everybody gets


@dataclass
class Fault:
    """What goes wrong with a file, the first so many times that it is asked for (None: always)."""

    times: int | None = None
    status: int = 0  # answered to GET and HEAD instead of the file
    cut_after: int | None = None  # bytes of a GET's answer, then the connection ends
    reset: bool = False  # … by a reset instead of an orderly end
    etag: str | None = None
    size: int | None = None  # claimed by HEAD
    body: bytes | None = None  # sent by GET instead of the file's bytes
    pause: float = 0.0  # seconds between the pieces of a GET's answer
    piece: int = 1 << 16
    no_commit: bool = False  # an answer without the hub's own headers, as a sign-in page gives


class Request(NamedTuple):
    method: str
    repo: str
    file: str
    revision: str
    range: str | None


@dataclass
class Hub:
    """The running server: what it serves, what goes wrong, what it was asked for."""

    url: str
    repos: dict[str, Repo] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)  # by file name
    requests: list[Request] = field(default_factory=list)
    probes: int = 0  # requests that ask only whether anybody is there
    others: list[str] = field(default_factory=list)
    ignores_range: bool = False
    sent: dict[str, int] = field(default_factory=dict)  # bytes of each file's contents

    def asked(self, method: str = "GET") -> list[str]:
        """The files that were asked for, in order."""
        return [request.file for request in self.requests if request.method == method]

    def ranges(self, file: str) -> list[str | None]:
        return [each.range for each in self.requests if each.method == "GET" and each.file == file]


def start() -> tuple[Hub, ThreadingHTTPServer]:
    """A hub without repos on a free port."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.hub = Hub(f"http://127.0.0.1:{server.server_address[1]}")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server.hub, server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hub: Hub


def etag_of(name: str, body: bytes) -> str:
    """As the hub has it: SHA-256 of the large files, git's SHA-1 of the others."""
    if name.endswith(".safetensors"):
        return hashlib.sha256(body).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        hub, path = self.server.hub, unquote(self.path)
        repo_name, _, rest = path.strip("/").partition("/resolve/")
        if path == "/":
            hub.probes += 1
            return self._say(200)
        if not rest:  # the library's own questions: what it tells the hub of the program that runs it
            hub.others.append(path)
            return self._say(404)
        revision, _, file = rest.partition("/")
        hub.requests.append(Request(self.command, repo_name, file, revision, self.headers.get("Range")))
        repo = hub.repos.get(repo_name)
        if repo is None:
            return self._say(404, "RepoNotFound")
        sent_token = self.headers.get("Authorization")
        if sent_token not in (None, f"Bearer {TOKEN}"):
            return self._say(401, message="Invalid credentials in Authorization header")
        if repo.gated and sent_token is None and file not in repo.public:
            return self._say(401 if file.endswith(".json") else 403, "GatedRepo")
        if revision not in ("main", repo.commit):
            return self._say(404, "RevisionNotFound")
        if file not in repo.files:
            return self._say(404, "EntryNotFound", commit=repo.commit)
        return self._file(repo, file, self._fault(file))

    def _fault(self, file: str) -> Fault:
        """The fault of this request. Faults of the body are used up by GET only."""
        fault = self.server.hub.faults.get(file)
        if fault is None or fault.times == 0:
            return Fault()
        if fault.times is not None and (self.command == "GET" or fault.status):
            fault.times -= 1
        return fault

    def _file(self, repo: Repo, file: str, fault: Fault) -> None:
        if fault.status:
            return self._say(fault.status)
        body = repo.files[file]
        headers = {} if fault.no_commit else {"X-Repo-Commit": repo.commit}
        headers |= {"ETag": f'"{fault.etag or etag_of(file, body)}"', "Accept-Ranges": "bytes"}
        if self.command == "HEAD":
            return self._send(200, headers, fault.size if fault.size is not None else len(body))
        body = fault.body if fault.body is not None else body
        asked, whole, status = self.headers.get("Range"), len(body), 200
        if asked and not self.server.hub.ignores_range:
            begin = int(asked.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {begin}-{whole - 1}/{whole}"
            body, status = body[begin:], 206
        self._send(status, headers, len(body))
        self._write(file, body, fault)

    def _write(self, file: str, body: bytes, fault: Fault) -> None:
        sent = self.server.hub.sent
        kept = body if fault.cut_after is None else body[: fault.cut_after]
        for begin in range(0, len(kept), fault.piece):
            piece = kept[begin : begin + fault.piece]
            self.wfile.write(piece)
            sent[file] = sent.get(file, 0) + len(piece)
            if fault.pause:
                threading.Event().wait(fault.pause)
        if len(kept) < len(body):
            self.wfile.flush()
            if fault.reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.rfile.close()
                self.connection.close()
            else:
                self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def _say(self, status: int, code: str = "", message: str = "", commit: str = "") -> None:
        """An answer without a file: the hub says in headers why."""
        told = {"X-Error-Code": code, "X-Error-Message": message, "X-Repo-Commit": commit}
        body = json.dumps({"error": message or code}).encode() if status >= 400 else b""
        self._send(status, {name: value for name, value in told.items() if value}, len(body))
        if self.command == "GET":
            self.wfile.write(body)

    def _send(self, status: int, headers: dict[str, str], length: int) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()
