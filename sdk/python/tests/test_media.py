from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path

import pytest
from capstan import CallCancelled, CallFailure
from capstan.media import Media, MediaError, MediaPath, open_media, read_reference
from conftest import FakeServer, Reply, Request, as_json

PATH = MediaPath("job", "a/b.png")
NEVER = threading.Event()


@pytest.mark.parametrize(
    "text", ["media://job", "media://job/../a", "media://job//a", "http://job/a", "media://j/a b"]
)
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(MediaError):
        read_reference(text)


def test_a_reference_names_a_job_and_a_file() -> None:
    assert read_reference("media://job/a/b.png") == PATH


def round_trip(media: Media, folder: Path) -> None:
    source, copy = folder / "source", folder / "copy"
    for content in (b"first", b"second, which replaces the first", b"x" * 3_000_000):
        source.write_bytes(content)
        media.store(source, PATH, "image/png", NEVER)
        media.fetch(PATH, copy, NEVER)
        assert copy.read_bytes() == content
        copy.unlink()
    with pytest.raises(MediaError):
        media.fetch(MediaPath("job", "missing"), copy, NEVER)
    stop = threading.Event()
    stop.set()
    with pytest.raises(CallCancelled):
        media.store(source, MediaPath("job", "never"), "image/png", stop)
    with pytest.raises(MediaError):
        media.fetch(MediaPath("job", "never"), copy, NEVER)


def test_a_folder_keeps_files_and_their_content_types(tmp_path: Path) -> None:
    store = tmp_path / "with space"
    round_trip(open_media(f"file://{store}".replace(" ", "%20")), tmp_path)
    (record,) = json.loads((store / "job/a/b.png~meta.json").read_text())
    assert record["content_type"] == "image/png"
    assert record["sha256"] == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    facts = (store / "job/a/b.png").stat()
    assert record["identity"] == f"{facts.st_ino}-{facts.st_size}-{facts.st_mtime_ns}"
    assert list((store / "~incoming").iterdir()) == []


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "store/job").symlink_to(tmp_path)
    with pytest.raises(MediaError, match="leads out"):
        open_media(f"file://{tmp_path}/store").fetch(
            MediaPath("job", "secret"), tmp_path / "copy", NEVER
        )


@pytest.mark.skipif("MEDIA_S3_URL" not in os.environ, reason="MEDIA_S3_URL names no server")
def test_a_bucket_keeps_files(tmp_path: Path) -> None:
    round_trip(open_media(os.environ["MEDIA_S3_URL"]), tmp_path)


@pytest.mark.parametrize("url", ["ftp://x", "file://", "s3://", "s3://media/p?regoin=a"])
def test_a_store_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="MEDIA_URL"):
        open_media(url)


class FakeApi:
    """Capstan's media routes, over a dictionary."""

    def __init__(self, server: FakeServer, *, redirects: bool = False) -> None:
        self.files: dict[str, bytes] = {}
        self.parts: list[bytes] = []
        self.redirects = redirects
        self.url = server.url
        server.answer = self.answer

    def answer(self, request: Request) -> Reply:
        if request.path.startswith("/bucket/"):
            if "authorization" in request.headers:
                return as_json(400, {"detail": "a bucket refuses a key"})
            return self.answer_bucket(request)
        if request.headers.get("authorization") != "Bearer key":
            return as_json(401, {"detail": "no key"})
        if request.method == "POST":
            return self.announce(request)
        if request.method == "PUT":
            self.files[request.path] = request.body
            return as_json(201, {})
        if request.path not in self.files:
            return as_json(404, {"detail": "no such file"})
        if self.redirects:
            return 307, {"location": f"{self.url}/bucket{request.path}"}, b""
        return 200, {}, self.files[request.path]

    def announce(self, request: Request) -> Reply:
        facts = request.json()
        self.announced = facts
        half = facts["size"] // 2
        sizes = (half, facts["size"] - half)
        parts = [
            {"url": f"/bucket/part/{at}", "headers": {"content-length": str(size)}}
            for at, size in enumerate(sizes)
        ]
        target = request.path.removesuffix("/upload")
        return as_json(201, {"parts": parts, "complete_url": f"/bucket/complete{target}"})

    def answer_bucket(self, request: Request) -> Reply:
        if request.method == "PUT":
            self.parts.append(request.body)
        elif request.method == "POST":
            whole, self.parts = b"".join(self.parts), []
            assert hashlib.sha256(whole).hexdigest() == self.announced["sha256"]
            self.files[request.path.removeprefix("/bucket/complete")] = whole
        else:
            return 200, {}, self.files[request.path.removeprefix("/bucket")]
        return as_json(200, {})


@pytest.mark.parametrize("redirects", [False, True])
def test_an_api_takes_small_files_at_once_and_announced_ones_in_parts(
    server: FakeServer, tmp_path: Path, redirects: bool
) -> None:
    FakeApi(server, redirects=redirects)
    round_trip(open_media(server.url, "key"), tmp_path)
    sent = [request.path for request in server.requests if request.method == "PUT"]
    assert sent.count("/v1/media/job/a/b.png") == 2
    assert sent.count("/bucket/part/1") == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_store_that_is_away_is_no_fault_of_the_input(
    server: FakeServer, tmp_path: Path, status: int
) -> None:
    server.answer = lambda request: as_json(status, {"detail": "away"})
    with pytest.raises(CallFailure) as caught:
        open_media(server.url, "key").fetch(PATH, tmp_path / "copy", NEVER)
    assert (caught.value.status, caught.value.retry_after) == (503, 5)


def test_no_answer_is_no_fault_of_the_input(server: FakeServer, tmp_path: Path) -> None:
    server.close()
    with pytest.raises(CallFailure):
        open_media(server.url, "key").fetch(PATH, tmp_path / "copy", NEVER)
