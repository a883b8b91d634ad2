#!/usr/bin/python3
"""Bandwidth at which one thread gets the bytes of a file that is in the system's cache, in pieces of 2 MiB, into 64 MiB of memory
in turns: by pread, and by copies out of a mapping. The medians of five times; what a budget's reads are compared with (docs/memory.md).

Usage: read_bandwidth.py FILE
"""
import mmap
import os
import statistics
import sys
import time

PIECE, ROOM = 2 << 20, 64 << 20


def measure(size, take):
    """GB/s of take(offset, place in the room)."""
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        for offset in range(0, size - PIECE + 1, PIECE):
            take(offset, offset % ROOM)
        seconds.append(time.perf_counter() - begin)
    return size // PIECE * PIECE / statistics.median(seconds) / 1e9


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    file = os.open(sys.argv[1], os.O_RDONLY)
    size = os.fstat(file).st_size
    room = memoryview(bytearray(b"\1" * ROOM))
    mapping = memoryview(mmap.mmap(file, 0, prot=mmap.PROT_READ))

    def read(offset, place):
        os.preadv(file, [room[place:place + PIECE]], offset)

    def copy(offset, place):
        room[place:place + PIECE] = mapping[offset:offset + PIECE]

    copy_all = measure(size, copy)
    print(f"pread {measure(size, read):.1f} GB/s, copies {copy_all:.1f} GB/s")


main()
