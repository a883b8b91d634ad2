#!/usr/bin/env python3
"""The C programs of docs/embedding.md, which are the blocks that begin with an #include: they compile without a warning, as C99,
run, and print what the block after "prints" shows.
Usage: check_embedding.py BUILD_FOLDER"""
import os
import re
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])
os.chdir(os.path.join(os.path.dirname(__file__), "..", ".."))
text = open("docs/embedding.md", encoding="utf-8").read()
programs = re.findall(r"```c\n(#include.*?)```\n(?:\nprints\n\n```text\n(.*?)```)?", text, re.S)
if len(programs) < 3:
    sys.exit(f"docs/embedding.md: {len(programs)} programs; there were 3 at least")
with tempfile.TemporaryDirectory() as work:
    for index, (source, shown) in enumerate(programs):
        path, program = os.path.join(work, f"{index}.c"), os.path.join(work, f"{index}")
        open(path, "w", encoding="utf-8").write(source)
        # Settings and loads whose later members stay 0 are what the headers ask for.
        flags = ["-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-Iinclude"]
        subprocess.run(["cc", "-std=c99", "-pedantic", *flags, path, "-o", program, f"-L{build}", "-lberth-compiler", "-lberth",
                        f"-Wl,-rpath,{build}"], check=True)
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        if done.returncode or (shown and done.stdout != shown):
            sys.exit(f"docs/embedding.md, program {index}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
print(f"{len(programs)} programs")
