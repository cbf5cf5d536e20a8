from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from capstan import Call
from capstan.media import open_media
from PIL import Image, ImageDraw

SAMPLES = Path(__file__).parent.parent / "samples"
RATE = 48_000


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, SAMPLES / name / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


picture, sound = load("picture"), load("sound")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "job").mkdir()
    return tmp_path


def edit(store: Path, **job: Any) -> Any:
    given = {"picture": {"media_store_path": "media://job/in.png"}, **job}
    call = Call(media=open_media(f"file://{store}"))
    return picture.edit(picture.Job.model_validate(given), call)


def a_product(store: Path) -> None:
    """A red disc with a white hole in front of a white wall that darkens a little."""
    product = (
        Image.linear_gradient("L").resize((400, 300)).point([240 + v // 17 for v in range(256)])
    )
    product = product.convert("RGB")
    draw = ImageDraw.Draw(product)
    draw.ellipse((100, 50, 300, 250), fill=(200, 20, 20))
    draw.ellipse((180, 130, 220, 170), fill=(250, 250, 250))
    product.save(store / "job/in.png")


def test_a_background_is_removed_and_a_hole_of_its_colour_stays(store: Path) -> None:
    a_product(store)
    result = edit(store, remove_background=True, output_path="media://job/out.png")
    disc = np.pi * 100**2 / (400 * 300)
    assert (result.width, result.height) == (400, 300)
    assert result.removed == pytest.approx(1 - disc, abs=0.01)
    alpha = Image.open(store / "job/out.png").getchannel("A")
    assert [alpha.getpixel(at) for at in ((0, 0), (399, 299), (120, 150), (200, 150))] == [
        0,
        0,
        255,
        255,
    ]


def test_a_picture_gets_smaller_and_is_blurred(store: Path) -> None:
    a_product(store)
    result = edit(store, max_width=200, blur=8, output_path="media://job/out.jpg")
    assert (result.width, result.height, result.removed) == (200, 150, 0)
    edge = [Image.open(store / "job/out.jpg").getpixel((x, 75))[1] for x in (30, 50, 70)]
    assert edge[0] > 200 > edge[1] > 60 > edge[2]
    assert edit(store, max_width=800, output_path="media://job/same.webp").width == 400


@pytest.mark.parametrize(
    ("job", "error"),
    [
        ({"output_path": "media://job/out.gif"}, "expected one of .png"),
        ({"output_path": "media://job/out.jpg", "remove_background": True}, "no transparency"),
        ({"output_path": "media://job/out.png"}, "no picture"),
    ],
)
def test_a_picture_that_cannot_be_is_refused(store: Path, job: dict[str, Any], error: str) -> None:
    (store / "job/in.png").write_text("no picture")
    with pytest.raises(ValueError, match=error):
        edit(store, **job)


def a_tone(seconds: float, amplitude: float, hertz: float = 997) -> Any:
    return amplitude * np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)


def test_loudness_is_that_of_the_standard() -> None:
    tone = a_tone(5, 1.0)
    assert sound.measure_loudness(tone[:, None], RATE) == pytest.approx(-3.01, abs=0.05)
    both = np.stack([tone, tone], axis=1) * 10 ** (-20 / 20)
    assert sound.measure_loudness(both, RATE) == pytest.approx(-20, abs=0.05)
    with_pause = np.concatenate([both, np.zeros((5 * RATE, 2))])
    assert sound.measure_loudness(with_pause, RATE) == pytest.approx(-20, abs=0.2)
    assert sound.measure_loudness(np.zeros((10, 1)), RATE) == -70


def master(store: Path, samples: Any, **job: Any) -> Any:
    soundfile.write(store / "job/in.wav", samples, RATE)
    given = {
        "sound": {"media_store_path": "media://job/in.wav"},
        "output_path": "media://job/out.flac",
        **job,
    }
    call = Call(media=open_media(f"file://{store}"))
    return sound.master(sound.Job.model_validate(given), call)


def test_silence_is_trimmed_and_the_loudness_is_set(store: Path) -> None:
    silence = np.zeros(RATE)
    result = master(store, np.concatenate([silence, a_tone(3, 0.05), silence, silence]))
    assert result.duration_ms == pytest.approx(3_100, abs=20)
    assert result.trimmed_ms == pytest.approx(2_900, abs=20)
    assert result.loudness_lufs == -16
    written, rate = soundfile.read(store / "job/out.flac", always_2d=True)
    assert sound.measure_loudness(written, rate) == pytest.approx(-16, abs=0.1)


def test_a_peak_limits_the_gain(store: Path) -> None:
    click = a_tone(3, 0.01)
    click[RATE] = 0.5
    result = master(store, click)
    written, _ = soundfile.read(store / "job/out.flac")
    assert 20 * np.log10(np.abs(written).max()) == pytest.approx(-1, abs=0.01)
    assert result.loudness_lufs < -30


@pytest.mark.parametrize(
    ("job", "error"),
    [
        ({}, "quieter than -50 dBFS"),
        ({"output_path": "media://job/out.mp3"}, "expected one of .wav"),
    ],
)
def test_a_sound_that_cannot_be_is_refused(store: Path, job: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        master(store, np.zeros(RATE), **job)
