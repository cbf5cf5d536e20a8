"""Trims the silence at both ends of a sound and sets its loudness, with numpy and soundfile.

Loudness is that of ITU-R BS.1770-4: weighted by frequency, in blocks of 400 ms without quiet ones.
"""

from pathlib import Path

import numpy as np
import soundfile
from capstan import Call, MediaReference, capability
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

CONTENT_TYPES = {".wav": "audio/wav", ".flac": "audio/flac", ".ogg": "audio/ogg"}
LONGEST_S = 3_600
Samples = NDArray[np.float64]
"""One row for each moment, one column for each channel."""


class File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    media_store_path: MediaReference


class Job(BaseModel):
    model_config = ConfigDict(extra="forbid")
    sound: File
    loudness_lufs: float = Field(-16, ge=-40, le=-5)
    max_peak_db: float = Field(-1, ge=-20, le=0, description="dBFS; limits the gain")
    silence_db: float = Field(-50, ge=-100, le=-10, description="dBFS; what is quieter is trimmed")
    keep_ms: int = Field(50, ge=0, le=10_000, description="silence that stays at both ends")
    output_path: MediaReference = Field(description="ends in .wav, .flac or .ogg")


class Sound(BaseModel):
    output_path: str
    duration_ms: int
    trimmed_ms: int
    loudness_lufs: float


def read_sound(path: Path) -> tuple[Samples, int]:
    """Read all channels, and the samples of a second."""
    try:
        facts = soundfile.info(path)
        if facts.duration > LONGEST_S:
            raise ValueError(f"sound: it takes {facts.duration:.0f} s; allowed are {LONGEST_S}")
        samples, rate = soundfile.read(path, dtype="float64", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise ValueError(f"sound: the file cannot be read: {error}") from None
    return samples, int(rate)


def trim(samples: Samples, rate: int, silence_db: float, keep_ms: int) -> Samples:
    """Cut what is quieter than `silence_db` at both ends, in windows of 10 ms."""
    window = max(1, rate // 100)
    loud = np.abs(samples).max(axis=1) > 10 ** (silence_db / 20)
    (at,) = np.nonzero(loud)
    if at.size == 0:
        raise ValueError(f"sound: all of it is quieter than {silence_db:g} dBFS")
    keep = rate * keep_ms // 1_000
    first = at[0] // window * window - keep
    last = (at[-1] // window + 1) * window + keep
    return samples[max(0, first) : last]


def _biquad_gain(points: Samples, b: tuple[float, ...], a: tuple[float, ...]) -> Samples:
    z = np.exp(-1j * points)
    return np.abs((b[0] + b[1] * z + b[2] * z**2) / (a[0] + a[1] * z + a[2] * z**2))


def _weights(size: int, rate: int) -> Samples:
    """Gain of each frequency by BS.1770: a shelf for the head, and a high pass."""
    points = np.linspace(0, np.pi, size // 2 + 1)
    k = np.tan(np.pi * 1681.974450955533 / rate)
    q, high = 0.7071752369554196, 10 ** (3.999843853973347 / 20)
    middle = high**0.4996667741545416
    shelf = _biquad_gain(
        points,
        (high + middle * k / q + k * k, 2 * (k * k - high), high - middle * k / q + k * k),
        (1 + k / q + k * k, 2 * (k * k - 1), 1 - k / q + k * k),
    )
    k, q = np.tan(np.pi * 38.13547087602444 / rate), 0.5003270373238773
    norm = 1 + k / q + k * k
    passing = _biquad_gain(
        points, (1, -2, 1), (1, 2 * (k * k - 1) / norm, (1 - k / q + k * k) / norm)
    )
    return shelf * passing


def measure_loudness(samples: Samples, rate: int) -> float:
    """Integrated loudness in LUFS; -70 for silence."""
    block, step = round(0.4 * rate), round(0.1 * rate)
    if len(samples) < block:
        samples = np.pad(samples, ((0, block - len(samples)), (0, 0)))
    spectrum = np.fft.rfft(samples, axis=0) * _weights(len(samples), rate)[:, None]
    weighted = np.fft.irfft(spectrum, len(samples), axis=0)
    sums = np.concatenate([[0], np.cumsum((weighted**2).sum(axis=1))])
    starts = np.arange(0, len(samples) - block + 1, step)
    powers = (sums[starts + block] - sums[starts]) / block
    powers = powers[_lufs(powers) > -70]
    if powers.size == 0:
        return -70.0
    return float(_lufs(powers[_lufs(powers) > _lufs(powers.mean()) - 10].mean()))


def _lufs(power: Samples) -> Samples:
    return -0.691 + 10 * np.log10(np.maximum(power, 1e-12))


@capability(
    name="sound",
    version="1.0.0",
    tags=["local"],
    max_concurrency=2,
    deterministic=True,
)
def master(job: Job, call: Call) -> Sound:
    """Trims the silence at both ends of a sound and sets its loudness."""
    ending = Path(job.output_path).suffix
    if ending not in CONTENT_TYPES:
        raise ValueError(f"output_path: expected one of {', '.join(CONTENT_TYPES)}, got {ending!r}")
    whole, rate = read_sound(call.download(job.sound.media_store_path))
    call.progress(0.3, "read")
    samples = trim(whole, rate, job.silence_db, job.keep_ms)
    loudness = measure_loudness(samples, rate)
    call.check()
    room_db = job.max_peak_db - 20 * np.log10(np.abs(samples).max())
    gain_db = min(job.loudness_lufs - loudness, float(room_db))
    if gain_db < job.loudness_lufs - loudness:
        call.log.warn(f"the peak allows {gain_db:.1f} dB only")
    result = call.temporary_path(f"sound{ending}")
    soundfile.write(result, samples * 10 ** (gain_db / 20), rate)
    call.progress(0.8, "written")
    call.upload(result, job.output_path, CONTENT_TYPES[ending])
    return Sound(
        output_path=job.output_path,
        duration_ms=round(1_000 * len(samples) / rate),
        trimmed_ms=round(1_000 * (len(whole) - len(samples)) / rate),
        loudness_lufs=round(loudness + gain_db, 2),
    )


if __name__ == "__main__":
    master.serve()
