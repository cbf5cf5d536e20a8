"""Files of a job: `media://JOB/FILE`, in the media store that `MEDIA_URL` names.

A store is a Capstan API, which may redirect to its bucket, a folder, or a bucket of S3. A file
appears whole or not at all. Transfers end early when `stop` is set.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Annotated, Any, BinaryIO, NamedTuple, Protocol
from urllib.parse import parse_qs, unquote, urljoin, urlsplit

import httpx2 as httpx
from pydantic import StringConstraints

from .errors import CallCancelled, CallFailure

_SEGMENT = (
    r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}"
    r"|\.[A-Za-z0-9_-][A-Za-z0-9._-]{0,126}|\.\.[A-Za-z0-9._-]{1,126})"
)
_REFERENCE = re.compile(rf"media://({_SEGMENT})/({_SEGMENT}(?:/{_SEGMENT}){{0,6}})")
_CHUNK = 65_536
DEFAULT_MEDIA_URL = "file://.capstan/media"
_ANNOUNCED = 1_048_576
"""Larger uploads are announced first: their bytes may go directly to a bucket."""
_PASSING = frozenset({408, 429, 500, 502, 503, 504})

MediaReference = Annotated[
    str, StringConstraints(pattern=rf"^media://{_SEGMENT}(?:/{_SEGMENT}){{1,7}}$")
]
"""The type of a field that names a file: `media://JOB/FILE`."""


class MediaError(ValueError):
    """A reference is wrong, the file does not exist, or the media store refused the transfer.

    `status` and `code` are those of an API's answer, else 0 and ``media_unknown``.
    """

    def __init__(self, message: str, status: int = 0, code: str = "media_unknown") -> None:
        """Keep the parts of the answer."""
        super().__init__(message)
        self.status = status
        self.code = code


class MediaPath(NamedTuple):
    """The two parts of a reference."""

    job_id: str
    file: str


def read_reference(text: str) -> MediaPath:
    """Split `media://JOB/FILE`; raise MediaError for any other text."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise MediaError(f"{text!r} is not a media reference: media://<job_id>/<file>")
    return MediaPath(found[1], found[2])


class Media(Protocol):
    """A media store."""

    def fetch(self, path: MediaPath, to: Path, stop: Event) -> None:
        """Write the file to a local path that does not exist yet."""

    def store(self, source: Path, path: MediaPath, content_type: str, stop: Event) -> None:
        """Replace the file as a whole by a local one."""


def open_media(url: str, token: str | None = None) -> Media:
    """Open the media store of a `MEDIA_URL`; an API needs the token."""
    if url.startswith(("http://", "https://")):
        return _ApiMedia(url, token)
    if url.startswith("s3://"):
        return _S3Media(url)
    directory = unquote(url[7:]) if url.startswith("file:///") else url.removeprefix("file://")
    if not url.startswith("file://") or directory == "":
        raise ValueError(
            f"MEDIA_URL is {url!r}; allowed are an http address, file://DIR and s3://BUCKET/PREFIX"
        )
    return _FolderMedia(Path(directory).absolute())


def _read(source: BinaryIO, stop: Event, size: int | None = None) -> Iterator[bytes]:
    """Read to the end, or `size` bytes."""
    left = size
    while left is None or left > 0:
        if stop.is_set():
            raise CallCancelled("the call was cancelled during a transfer")
        chunk = source.read(_CHUNK if left is None else min(_CHUNK, left))
        if not chunk:
            return
        left = None if left is None else left - len(chunk)
        yield chunk


def _away(reason: object) -> CallFailure:
    return CallFailure(503, f"the media store is unavailable: {reason}", retry_after=5)


class _ApiMedia:
    def __init__(self, url: str, token: str | None) -> None:
        self._base = url.rstrip("/")
        self._key = {} if token is None else {"authorization": f"Bearer {token}"}
        # Addresses in a bucket and upload tickets grant access themselves: no key goes with them.
        self._http = httpx.Client(timeout=httpx.Timeout(60, connect=10))

    def fetch(self, path: MediaPath, to: Path, stop: Event) -> None:
        with self._send("GET", self._address(path), path, self._key) as answer:
            if answer.status_code != 307:
                return _write(answer, to, stop)
            elsewhere = answer.headers["location"]
        with self._send("GET", elsewhere, path) as answer:
            _write(answer, to, stop)

    def store(self, source: Path, path: MediaPath, content_type: str, stop: Event) -> None:
        size = source.stat().st_size
        if size >= _ANNOUNCED:
            return self._store_announced(source, path, content_type, stop)
        headers = {**self._key, "content-type": content_type, "content-length": str(size)}
        with source.open("rb") as file:
            self._put(self._address(path), path, headers, _read(file, stop))

    def _store_announced(
        self, source: Path, path: MediaPath, content_type: str, stop: Event
    ) -> None:
        facts = {
            "size": source.stat().st_size,
            "sha256": _digest(source, stop),
            "content_type": content_type,
        }
        address = f"{self._address(path)}/upload"
        with self._send("POST", address, path, self._key, json=facts) as answer:
            ticket = json.loads(answer.read())
        with source.open("rb") as file:
            for part in ticket.get("parts", [ticket]):
                size = int(part["headers"]["content-length"])
                self._put(part["url"], path, part["headers"], _read(file, stop, size))
        if "complete_url" in ticket:
            with self._send("POST", ticket["complete_url"], path) as answer:
                answer.read()

    def _put(
        self, url: str, path: MediaPath, headers: dict[str, str], content: Iterator[bytes]
    ) -> None:
        with self._send("PUT", url, path, headers, content=content) as answer:
            answer.read()

    def _address(self, path: MediaPath) -> str:
        return f"{self._base}/v1/media/{path.job_id}/{path.file}"

    @contextmanager
    def _send(
        self,
        method: str,
        url: str,
        path: MediaPath,
        headers: dict[str, str] | None = None,
        **content: Any,
    ) -> Iterator[httpx.Response]:
        try:
            where = urljoin(f"{self._base}/", url)
            with self._http.stream(method, where, headers=headers, **content) as answer:
                if not (answer.is_success or (method == "GET" and answer.status_code == 307)):
                    raise _refused(path, answer)
                yield answer
        except httpx.TransportError as error:
            raise _away(error or type(error).__name__) from error


def _refused(path: MediaPath, answer: httpx.Response) -> Exception:
    status, code = answer.status_code, "media_unknown"
    text = answer.read().decode(errors="replace")
    with suppress(ValueError, KeyError, TypeError):  # a bucket answers XML
        problem = json.loads(text)
        code, text = str(problem["code"]), str(problem["detail"])
    reason = f"media://{path.job_id}/{path.file}: answered {status}: {text[:500]}"
    return _away(reason) if status in _PASSING else MediaError(reason, status, code)


def _write(answer: httpx.Response, to: Path, stop: Event) -> None:
    with to.open("xb") as file:
        for chunk in answer.iter_bytes(_CHUNK):
            if stop.is_set():
                raise CallCancelled("the call was cancelled during a transfer")
            file.write(chunk)


def _digest(source: Path, stop: Event) -> str:
    digest = hashlib.sha256()
    with source.open("rb") as file:
        for chunk in _read(file, stop):
            digest.update(chunk)
    return digest.hexdigest()


class _FolderMedia:
    """`DIR/JOB/FILE`. Beside a file, `FILE~meta.json` holds its content type for the API."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def fetch(self, path: MediaPath, to: Path, stop: Event) -> None:
        source = self._locate(path)
        if not source.is_file():
            raise MediaError(f"media://{path.job_id}/{path.file} does not exist")
        with source.open("rb") as file, to.open("xb") as copy:
            for chunk in _read(file, stop):
                copy.write(chunk)

    def store(self, source: Path, path: MediaPath, content_type: str, stop: Event) -> None:
        target = self._locate(path)
        incoming = self._root / "~incoming" / str(uuid.uuid4())
        target.parent.mkdir(parents=True, exist_ok=True)
        incoming.parent.mkdir(exist_ok=True)
        try:
            with source.open("rb") as file, incoming.open("xb") as copy:
                for chunk in _read(file, stop):
                    copy.write(chunk)
            facts = incoming.stat()
            record = {
                "identity": f"{facts.st_ino}-{facts.st_size}-{facts.st_mtime_ns}",
                "content_type": content_type,
                "sha256": _digest(source, stop),
            }
            sidecar = incoming.with_name(f"{incoming.name}~meta")
            sidecar.write_text(json.dumps([record]))
            os.replace(sidecar, target.with_name(f"{target.name}~meta.json"))
            os.replace(incoming, target)
        finally:
            incoming.unlink(missing_ok=True)

    def _locate(self, path: MediaPath) -> Path:
        target = self._root / path.job_id / path.file
        if not target.resolve().is_relative_to(self._root.resolve()):
            raise MediaError(f"media://{path.job_id}/{path.file} leads out of the media store")
        return target


class _S3Media:
    """`s3://BUCKET/PREFIX?region=…&endpoint=…&path_style=true`; boto3 finds the keys."""

    def __init__(self, url: str) -> None:
        try:
            import boto3
            from botocore.config import Config
        except ImportError as error:
            raise ValueError(
                "MEDIA_URL names S3, which needs: pip install 'capstan[s3]'"
            ) from error
        parts = urlsplit(url)
        options = {name: values[0] for name, values in parse_qs(parts.query).items()}
        unknown = sorted(options.keys() - {"region", "endpoint", "path_style"})
        if unknown or parts.hostname is None:
            seen = f"the option {unknown[0]}" if unknown else "no bucket"
            raise ValueError(
                f"MEDIA_URL has {seen}; "
                "allowed is s3://BUCKET/PREFIX?region=…&endpoint=…&path_style=true"
            )
        endpoint = options.get("endpoint")
        style = "path" if options.get("path_style") == "true" else "auto"
        self._bucket = parts.hostname
        self._prefix = parts.path.strip("/")
        self._client = boto3.client(
            "s3",
            region_name=options.get("region", "us-east-1" if endpoint else None),
            endpoint_url=endpoint,
            config=Config(s3={"addressing_style": style}),
        )

    def fetch(self, path: MediaPath, to: Path, stop: Event) -> None:
        with self._faults(path):
            found = self._client.get_object(Bucket=self._bucket, Key=self._key(path))
            with found["Body"] as body, to.open("xb") as file:
                for chunk in _read(body, stop):
                    file.write(chunk)

    def store(self, source: Path, path: MediaPath, content_type: str, stop: Event) -> None:
        def check(_: int) -> None:
            if stop.is_set():
                raise CallCancelled("the call was cancelled during a transfer")

        with self._faults(path):
            extra = {"ContentType": content_type}
            self._client.upload_file(
                str(source), self._bucket, self._key(path), ExtraArgs=extra, Callback=check
            )

    def _key(self, path: MediaPath) -> str:
        return "/".join(part for part in (self._prefix, path.job_id, path.file) if part)

    @contextmanager
    def _faults(self, path: MediaPath) -> Iterator[None]:
        from boto3.exceptions import S3UploadFailedError
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except S3UploadFailedError as error:
            raise _away(error) from error
        except ClientError as error:
            status = error.response["ResponseMetadata"].get("HTTPStatusCode", 500)
            reason = f"media://{path.job_id}/{path.file}: {error}"
            raise _away(reason) if status in _PASSING else MediaError(reason) from error
        except BotoCoreError as error:
            raise _away(error) from error


def guess_type(file: str) -> str:
    """Return the content type that the ending of a name says."""
    return mimetypes.guess_type(file)[0] or "application/octet-stream"


def write_local(data: bytes | str | Path, to: Path) -> Path:
    """Return the path of a local file, or of a new one that holds the bytes."""
    if isinstance(data, bytes):
        to.write_bytes(data)
        return to
    return Path(data)


def remove_folder(folder: Path) -> None:
    """Delete a temporary folder with all of its files."""
    shutil.rmtree(folder, ignore_errors=True)
