#!/usr/bin/env python3
"""Bytes of code and constants, and of data, that a peer's objects have in a linked program, by the linker's map.

Usage: linked.py MAP      prints both; counted are sections of peer_*.o, and of tflm.o those of functions other than main
"""
import re
import sys


def main():
    text, data = 0, 0
    linked = open(sys.argv[1]).read().split("Linker script and memory map", 1)[1]
    # A long section name stands in a line of its own.
    for section, size, file in re.findall(r"^ (\.[^\s*]+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S+)$", linked, re.M):
        calls = file == "tflm.o" and "main" not in section
        if section.startswith((".text", ".rodata")) and (file.startswith("peer_") or calls):
            text += int(size, 16)
        elif section.startswith((".data", ".bss")) and file.startswith("peer_"):
            data += int(size, 16)
    print(text, data)


main()
