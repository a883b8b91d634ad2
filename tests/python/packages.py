"""What packages that use ONNX Runtime find in made-up inputs, as JSON. With `berth` as the argument, over Berth."""

import json
import sys

if sys.argv[1:] == ["berth"]:
    import berth.onnxruntime
    berth.onnxruntime.install()

import numpy as np
from magika import Magika
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

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


print(json.dumps({"magika": kinds_of_files(), "rapidocr": text_in_a_picture()}))
