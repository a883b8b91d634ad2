"""What packages that use ONNX Runtime find in made-up inputs, as JSON. With `berth` as the argument, over Berth."""

import importlib.util
import io
import json
import sys

if sys.argv[1:] == ["berth"]:
    import berth.onnxruntime
    berth.onnxruntime.install()

import numpy as np
from magika import Magika
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

from applications import APPLICATIONS

SOURCES = {
    "c": "#include <stdio.h>\nint main(void) {\n    printf(\"hello\\n\");\n    return 0;\n}\n" * 3,
    "python": "import os\n\ndef names(folder):\n    return [name for name in os.listdir(folder) if name]\n" * 3,
    "json": json.dumps({"names": ["a", "b"], "sizes": list(range(50))}, indent=2),
}
TEXT = "Hello Berth 2026"


def kinds_of_files():
    magika = Magika()
    found = {name: magika.identify_bytes(source.encode()) for name, source in SOURCES.items()}
    return {name: [str(result.output.label), float(result.score)] for name, result in found.items()}


def text_in_a_picture():
    picture = Image.new("RGB", (480, 120), "white")
    ImageDraw.Draw(picture).text((20, 30), TEXT, fill="black", font=ImageFont.load_default(48))
    lines, _ = RapidOCR()(np.array(picture))
    return [[np.array(box).tolist(), text, float(score)] for box, text, score in lines]


def captchas():
    import ddddocr
    file = io.BytesIO()
    picture = Image.new("RGB", (160, 60), "white")
    ImageDraw.Draw(picture).text((20, 5), "x7kQ", fill="black", font=ImageFont.load_default(48))
    picture.save(file, "PNG")
    return [ddddocr.DdddOcr(show_ad=False, **which).classification(file.getvalue()) for which in ({}, {"old": True})]


def people_in_noise():
    """The detector itself: noise shows nobody, so what the network says is compared."""
    from nudenet import NudeDetector
    noise = np.random.default_rng(1).random((1, 3, 320, 320), np.float32)
    session = NudeDetector().onnx_session
    (found,) = session.run(None, {session.get_inputs()[0].name: noise})
    return np.abs(found).mean(axis=2).ravel().tolist()


def speech_in_sounds():
    """A voice-like sound between silences."""
    import torch
    from silero_vad import load_silero_vad
    time = np.arange(3 * 16000, dtype=np.float32) / 16000
    sound = sum(np.sin(2 * np.pi * 120 * k * time) / k for k in range(1, 20)) * (1 + np.sin(2 * np.pi * 4 * time))
    sound = torch.from_numpy((0.1 * sound * ((time > 1) & (time < 2))).astype(np.float32))
    model = load_silero_vad(onnx=True)
    return model.audio_forward(sound, 16000).flatten().tolist()


print(json.dumps({"ddddocr": captchas(), "nudenet": people_in_noise(),
                  "silero": speech_in_sounds() if importlib.util.find_spec("torch") else "no PyTorch here", "magika": kinds_of_files(), "rapidocr": text_in_a_picture(),
                  **{name: find() for name, find in APPLICATIONS.items()}}))
