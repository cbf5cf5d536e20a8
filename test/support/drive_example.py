"""Runs the example of the samples with a photo and a voice of its own, and prints facts of the results as JSON."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile
from capstan import Capstan
from PIL import Image, ImageDraw

definition, job = (json.loads(text) for text in sys.argv[1:3])
folder = Path(tempfile.mkdtemp())

photo = Image.new("RGB", (1_200, 900), (245, 245, 240))
ImageDraw.Draw(photo).ellipse((300, 150, 900, 750), fill=(20, 90, 160))
photo.save(folder / "photo.png")
moments = np.arange(4 * 48_000) / 48_000
voice = 0.02 * np.sin(2 * np.pi * 440 * moments) * ((moments >= 1) & (moments < 3))
soundfile.write(folder / "voice.wav", voice, 48_000)

with Capstan() as capstan:
    files = {name: folder / name for name in ("photo.png", "voice.wav")}
    output = capstan.run(definition, job=job, files=files).result()
    copies = {
        name: capstan.download(output[name], folder / f"{name}.result")
        for name in ("cutout", "backdrop", "voice")
    }

cutout, backdrop = Image.open(copies["cutout"]), Image.open(copies["backdrop"])
sound = soundfile.info(copies["voice"])
alphas = [cutout.getchannel("A").getpixel(at) for at in ((0, 0), (400, 300))]
facts = {
    "cutout": [cutout.mode, cutout.size, *alphas],
    "backdrop": [backdrop.mode, backdrop.size],
    "voice": [sound.format, round(1_000 * sound.duration)],
    "duration_ms": output["duration_ms"],
}
print(json.dumps(facts))
