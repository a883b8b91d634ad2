#!/usr/bin/python3
"""Every kernel of the models in ../shared/models compiles with nvcc for sm_80 and sm_90, or for sm_90a what is for that alone, each text once.

Usage: model_kernels.py BERTH CACHE_FOLDER [--nvcc NVCC] [--models FOLDER] [--emulation FOLDER] [--optimise]

Models are built for `cuda -arch=sm_80` and `cuda -arch=sm_90a`; what programs have beside kernels (helper functions) is the same in all
for sm_80; for sm_90a those with the same are compiled together. Kernels with the same text but for their name are one; those for sm_90a that sm_80 does not have, with wgmma among them, are compiled for sm_90a. They go through nvcc many at a time, as PTX of compute_80 that is assembled for both, with the
least optimisation that nvcc offers (half the time) unless --optimise is given. The cache has the hash of each kernel that nvcc took, with the helper functions and the version: what has not changed is not compiled again.

Models that become byte code, whose kernels are made when a run shows their shapes, are named in BYTE_CODE; no other one may be refused.
They run in the emulation of CUDA, on the first of their data sets, must give what comes with that, and leave their kernels there (all that they ever had
in CACHE_FOLDER: what is compiled for the processor is kept, too).
Exit status 1 where a build or nvcc fails; prints BERTH-SKIPPED where models or nvcc are not there.
"""
import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile

TARGET, NEWER = "cuda -arch=sm_80", "cuda -arch=sm_90a"
# What nvcc compiles for whom, by the target.
CODE = {TARGET: "arch=compute_80,code=[sm_80,sm_90]", NEWER: "arch=compute_90a,code=sm_90a"}
PER_FILE = 64
# Dimensions of inputs that models leave open.
DIMENSIONS = {
    "llm_tiny": ["seq=16", "past=0", "total=16"], "nemo80": ["N=16000"],
    "ppocr_cls": ["x.2=48", "x.3=192"], "ppocr4_rec": ["x.2=48", "p2o.DynamicDimension.1=320"],
    "ppocr4_det": ["p2o.DynamicDimension.1=320", "p2o.DynamicDimension.2=320"],
}
BYTE_CODE = ("control_flow", "silero_vad", "silero_vad_op18_ifless", "wespeaker")


def models(folder, byte_code=False):
    for here, _, files in sorted(os.walk(folder)):
        name = os.path.relpath(here, folder)
        if (name.split(os.sep)[0] in BYTE_CODE) == byte_code:
            yield from ((name, os.path.join(here, f)) for f in sorted(files) if f.endswith(".onnx"))


def texts_of(berth, name, path, target, work):
    program, folder = os.path.join(work, "p.berth"), os.path.join(work, name.replace(os.sep, "_") + target[-3:])
    dims = [word for dim in DIMENSIONS.get(name.split(os.sep)[0], []) for word in ("--dim", dim)]
    for command in ([berth, "build", path, "--target", target, "-o", program] + dims, [berth, "inspect", program, f"--extract={folder}"]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{name}: {' '.join(command)}: {done.stderr.strip()[-300:]}")
    images = os.path.join(folder, "image")
    if not os.path.isdir(images):
        raise RuntimeError(f"{name}: its program has no kernels to look at")
    for image in sorted(os.listdir(images)):
        if image.endswith(".cu"):
            with open(os.path.join(images, image)) as file:
                yield file.read().rstrip("\0")


def run_byte_code(options):
    """Texts of the kernels that runs made, and what failed."""
    sources, problems, count = os.path.join(options.cache, "byte_code"), [], 0
    os.makedirs(sources, exist_ok=True)
    environment = dict(os.environ, LD_LIBRARY_PATH=options.emulation, BERTH_EMULATION_SOURCES=sources,
                       BERTH_CACHE_DIR=os.path.join(options.cache, "emulated"))
    for name, path in models(options.models, byte_code=True):
        data = os.path.join(os.path.dirname(path), "test_data_set_0")
        if not os.path.isdir(data):
            problems.append(f"{name}: there is no data set to run it on")
            continue
        done = subprocess.run([options.berth, "verify", path, "--data", data, "--target", TARGET], capture_output=True, text=True, env=environment)
        count += 1
        if done.returncode:
            problems.append(f"verify {name} on emulated CUDA: {(done.stdout + done.stderr).strip()[-400:]}")
    texts = []
    for source in sorted(os.listdir(sources)):
        with open(os.path.join(sources, source)) as file:
            texts.append(file.read())
    return count, texts, problems


def kernels_of(text, name, target, groups):
    """Adds what the text has to a group (helper functions, kernels) of the target; the number of its kernels."""
    parts = re.split(r'^(extern "C" __global__.*?^}\n)', text, flags=re.M | re.S)
    helpers, kernels = groups.setdefault((target, "" if target == TARGET else parts[0]), ({}, {}))
    helpers[parts[0]] = None
    for guarded in re.findall(r"^#ifndef .*?^#endif\n", "".join(parts[2::2]), flags=re.M | re.S):
        helpers[guarded] = None
    for kernel in parts[1::2]:
        body, named = re.subn(r"\bu\d+_\d+\(", "KERNEL(", kernel, count=1)
        if not named:
            raise RuntimeError(f"{name}: a kernel without a name: {kernel[:200]}")
        kernels.setdefault(body, f"{re.sub(r'[^a-zA-Z0-9]', '_', name)}_{len(kernels)}")
    return len(parts) // 2


def quick_options(nvcc):
    """nvcc's options to optimise little; [] where its version has none."""
    offered = subprocess.run([nvcc, "--help"], capture_output=True, text=True).stdout
    return ["--Ofast-compile=max"] if "--Ofast-compile" in offered else []


def compiles(nvcc, target, extra, text, work):
    source = os.path.join(work, "kernels.cu")
    with open(source, "w") as file:
        file.write(text)
    said = subprocess.run([nvcc, "-std=c++17", "-w", "-fatbin", "-gencode", CODE[target], *extra, "-o",
                           os.path.join(work, "kernels.fatbin"), source], capture_output=True, text=True)
    if said.returncode:
        print(f"FAILED nvcc: {(said.stderr or said.stdout)[:1000]}")
    return said.returncode == 0


def compile_all(nvcc, target, extra, helpers, kernels, folder, work):
    os.makedirs(folder, exist_ok=True)
    cache = os.path.join(folder, "kernels.txt")
    known = set()
    if os.path.exists(cache):
        with open(cache) as file:
            known.update(file.read().split())
    common = "".join(helpers)
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    hashes = {body: hashlib.sha256((("" if target == TARGET else target) + version + "".join(extra) + common + body).encode()).hexdigest() for body in kernels}
    new = [body for body in kernels if hashes[body] not in known]
    print(f"{len(new)} of {len(kernels)} to compile for {CODE[target]}")
    fine = True
    for first in range(0, len(new), PER_FILE):
        some = new[first:first + PER_FILE]
        if not compiles(nvcc, target, extra, common + "".join(body.replace("KERNEL(", f"{kernels[body]}(", 1) for body in some), work):
            fine = False
            continue
        with open(cache, "a") as file:
            file.write("".join(f"{hashes[body]}\n" for body in some))
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("berth")
    parser.add_argument("cache")
    parser.add_argument("--nvcc", default="/usr/local/cuda/bin/nvcc")
    parser.add_argument("--optimise", action="store_true", help="compile as for use, not as quickly as possible")
    parser.add_argument("--emulation", help="folder of the emulated libcuda and NVRTC, for byte code")
    parser.add_argument("--models", default="../shared/models")
    options = parser.parse_args()
    found = list(models(options.models))
    if not found:
        print("BERTH-SKIPPED 1: the models of ../shared/models are not there")
        return 0
    groups, count, failed = {(TARGET, ""): ({}, {})}, 0, False
    with tempfile.TemporaryDirectory() as work:
        for name, path in found:
            try:
                for target in (TARGET, NEWER):
                    for text in texts_of(options.berth, name, path, target, work):
                        count += kernels_of(text, name, target, groups)
            except RuntimeError as problem:
                print(f"FAILED {problem}")
                failed = True
        if options.emulation:
            ran, texts, problems = run_byte_code(options)
            count += sum(kernels_of(text, "byte_code", TARGET, groups) for text in texts)
            print(f"{ran} models in byte code, {len(texts)} texts of them")
            for problem in problems:
                print(f"FAILED {problem}")
                failed = True
        both = groups[TARGET, ""][1]
        for (target, _), (_, kernels) in groups.items():
            for body in [body for body in kernels if target == NEWER and body in both]:
                del kernels[body]
        bodies = {body for _, kernels in groups.values() for body in kernels}
        print(f"{len(found)} models, {count} kernels, {len(bodies)} different ones, {sum('wgmma' in body for body in bodies)} with wgmma")
        if not os.access(options.nvcc, os.X_OK):
            print("BERTH-SKIPPED 1: nvcc is not there")
            return 1 if failed else 0
        extra = [] if options.optimise else quick_options(options.nvcc)
        for (target, _), (helpers, kernels) in groups.items():
            failed |= not compile_all(options.nvcc, target, extra, helpers, kernels, options.cache, work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
