#!/usr/bin/env python3
"""Plain C beside its peers against the goals: RAM at most 0.7 of the best peer's, text and instructions at most its.

Usage: goals.py OURS=FILE... -- PEER=FILE...      FILE: what scripts/bare_sizes.sh, bare_onnx2c.sh, bare_peers.sh or bare_tflm.sh printed

A cell is our figure / the least of all peers, and "met" or "not met". Each build of ours is a row: it has to meet all
three goals at once. scripts/bare_goals.sh makes the tables and calls this.
"""
import sys

GOALS = {"RAM": 0.7, "text": 1.0, "instructions": 1.0}


def read(path):
    """{model: {column: number}} of a table; rows without numbers are left out."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in open(path) if line.startswith("|")]
    names = ["RAM" if name == "arena" else name for name in rows[0]]
    return {row[0]: {name: int(cell) for name, cell in zip(names[1:], row[1:])}
            for row in rows[2:] if all(cell.isdigit() for cell in row[1:])}


def cell(ours, peers, column, model, alike):
    theirs = [(table[name][column], peer) for peer, table in peers for name in alike(peer, model) if name in table]
    if not theirs:
        return f"{ours[column]:,}, no peer", None
    least, peer = min(theirs)
    ratio = ours[column] / least
    met = ratio <= GOALS[column]
    return f"{ours[column]:,} / {least:,} ({peer}) = {ratio:.3f} {'met' if met else '**not met**'}", met


def main():
    split = sys.argv.index("--")
    ours, peers = ([(word.split("=", 1)[0], read(word.split("=", 1)[1])) for word in words]
                   for words in (sys.argv[1:split], sys.argv[split + 1:]))

    def alike(peer, model):  # CMSIS-NN computes int8 networks alone, and its table calls them by the network
        return [model[:-len("_int8")]] * model.endswith("_int8") if peer.startswith("CMSIS") else [model]

    counts, at_once = {column: [0, 0] for column in GOALS}, 0
    print(f"| model | build | {' | '.join(f'{column} (goal: {goal})' for column, goal in GOALS.items())} |")
    print("|---" * (2 + len(GOALS)) + "|")
    for model in ours[0][1]:
        reached, whole = {column: None for column in GOALS}, False
        for build, table in ours:
            if model not in table:
                continue
            cells, goals = [], []
            for column in GOALS:
                text, met = cell(table[model], peers, column, model, alike)
                cells.append(text)
                goals.append(met)
                if met is not None:
                    reached[column] = bool(reached[column]) or met
            whole |= all(goals)
            print(f"| {model} | {build} | {' | '.join(cells)} |")
        for column, met in reached.items():
            counts[column][0] += met is True
            counts[column][1] += met is not None
        at_once += whole
    print("\nMet by one of the builds: " + ", ".join(f"{column} {met} of {all_}" for column, (met, all_) in counts.items()) + f"; all three by the same build: {at_once}")


main()
