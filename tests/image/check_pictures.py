#!/usr/bin/env python3
"""Decodes pictures that Pillow writes by a model of one ImageDecoder: what is written without loss is what went in, what is
written with loss differs little from what Pillow reads. Files that are cut give a picture without pixels, as ONNX says.
Usage: check_pictures.py BERTH"""
import io
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper
from PIL import Image, features

FORMATS = ("RGB", "BGR", "Grayscale")
berth = sys.argv[1]
failures = []
rng = np.random.default_rng(20)


def write_model(path, pixel_format):
    node = helper.make_node("ImageDecoder", ["file"], ["picture"], pixel_format=pixel_format)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("file", TensorProto.UINT8, ["N"])],
                              [helper.make_tensor_value_info("picture", TensorProto.UINT8, ["H", "W", "C"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 9
    onnx.save(model, path)


def decode(folder, data, pixel_format):
    np.save(folder / "file.npy", np.frombuffer(data, dtype=np.uint8))
    done = subprocess.run([berth, "run", str(folder / f"{pixel_format}.onnx"), "-q", "--input", f"file={folder}/file.npy",
                           "-o", f"picture={folder}/out.npy"], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip()
    return np.load(folder / "out.npy")


def smooth(height, width):
    """A picture that codes with loss keep nearly as it is."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 255 / width, y * 255 / height, (x + y) * 127 / (width + height) + 60], -1).astype(np.uint8)


def noise(height, width, channels=3):
    return rng.integers(0, 256, (height, width, channels) if channels > 1 else (height, width), dtype=np.uint8)


def in_rgb(array):
    return np.repeat(array[:, :, None], 3, 2) if array.ndim == 2 else array[:, :, :3]


def pixels_of(rgb, pixel_format):
    """What the operator makes of RGB; grey as Pillow's convert("L")."""
    if pixel_format == "Grayscale":
        return np.asarray(Image.fromarray(rgb).convert("L"))[:, :, None]
    return rgb[:, :, ::-1] if pixel_format == "BGR" else rgb


def cases():
    """(name, picture, Pillow's format, its options, largest difference from Pillow's reading; None = as it went in)"""
    odd, tall = noise(13, 17), noise(31, 3)
    grey = noise(9, 14, 1)
    palette = Image.fromarray(smooth(16, 16)).quantize(13)
    bits = Image.fromarray(noise(11, 19, 1)).convert("1")
    alpha = Image.fromarray(noise(7, 6, 4), "RGBA")
    for kind, options in (("BMP", {}), ("PNG", {}), ("PPM", {}), ("TIFF", {}), ("WEBP", {"lossless": True, "exact": True}),
                          ("JPEG2000", {}), ("JPEG2000", {"num_resolutions": 2, "tile_size": (8, 8)}),
                          ("JPEG2000", {"no_jp2": True}), ("TIFF", {"compression": "tiff_lzw"}),
                          ("TIFF", {"compression": "tiff_adobe_deflate"}), ("TIFF", {"compression": "packbits"}),
                          ("TIFF", {"big_tiff": True})):
        for picture in (odd, tall):
            yield f"{kind} {options}", Image.fromarray(picture), kind, options, None
    for kind in ("BMP", "PNG", "PPM", "TIFF", "JPEG2000"):
        yield f"{kind} grey", Image.fromarray(grey), kind, {}, None
    for kind in ("BMP", "PNG", "TIFF"):
        yield f"{kind} palette", palette, kind, {}, None
    for kind in ("BMP", "PNG", "PPM", "TIFF"):
        yield f"{kind} of bits", bits, kind, {}, None
    for kind, options in (("PNG", {}), ("WEBP", {"lossless": True, "exact": True})):
        yield f"{kind} with opacity", alpha, kind, options, None
    for sampling in (0, 1, 2):
        yield f"JPEG sampled {sampling}", Image.fromarray(smooth(37, 50)), "JPEG", {"subsampling": sampling}, 0
    yield "JPEG progressive", Image.fromarray(smooth(64, 33)), "JPEG", {"progressive": True, "quality": 95}, 0
    yield "JPEG grey", Image.fromarray(grey), "JPEG", {}, 0
    yield "JPEG of inks", Image.fromarray(smooth(24, 40)).convert("CMYK"), "JPEG", {"quality": 95}, 1
    yield "WebP", Image.fromarray(smooth(40, 41)), "WEBP", {"quality": 90}, 0
    yield "JPEG 2000 with loss", Image.fromarray(smooth(40, 41)), "JPEG2000", \
        {"irreversible": True, "quality_mode": "dB", "quality_layers": [45]}, 1
    yield "TIFF of JPEG", Image.fromarray(smooth(40, 48)), "TIFF", {"compression": "jpeg", "quality": 90}, 1


def check(folder, name, picture, kind, options, loss):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    data = file.getvalue()
    read = picture if loss is None else Image.open(io.BytesIO(data))
    rgb = in_rgb(np.asarray(read if read.mode in ("L", "RGB", "RGBA") else read.convert("RGB")))
    for pixel_format in FORMATS:
        got, want = decode(folder, data, pixel_format), pixels_of(rgb, pixel_format)
        if isinstance(got, str) or got.shape != want.shape:
            failures.append(f"{name} to {pixel_format}: {got if isinstance(got, str) else got.shape}, not {want.shape}")
            continue
        difference = np.abs(got.astype(int) - want.astype(int)).max()
        if difference > (loss or 0):
            failures.append(f"{name} to {pixel_format}: differs by {difference}")
    for size in (len(data) * 6 // 10, 30):
        got = decode(folder, data[:size], "RGB")
        # Without its last rows a file may still be one: TIFF's directory comes before or behind, a JPEG may end anywhere.
        if isinstance(got, str) or got.shape != (0, 0, 3):
            failures.append(f"{name} cut after {size} of {len(data)} bytes: {got if isinstance(got, str) else got.shape}")


with tempfile.TemporaryDirectory() as name:
    root = pathlib.Path(name)
    for pixel_format in FORMATS:
        write_model(root / f"{pixel_format}.onnx", pixel_format)
    count = skipped = 0
    for case in cases():
        lacks = {"WEBP": "webp", "JPEG2000": "jpg_2000"}.get(case[2])
        if lacks and not features.check(lacks):
            skipped += 1
            continue
        check(root, *case)
        count += 1
    got = decode(root, b"no picture", "RGB")
    if isinstance(got, str) or got.shape != (0, 0, 3):
        failures.append(f"no picture: {got}")
for failure in failures:
    print("FAILED", failure)
if skipped:
    print(f"BERTH-SKIPPED {skipped}: this Pillow does not write them")
print(f"{count} pictures in three forms, {len(failures)} failures")
sys.exit(1 if failures else 0)
