#!/usr/bin/env python3
"""A decoder that appends to its cache token by token, beside ONNX Runtime, in turns.

    PYTHONPATH=python python3 bench/decode.py MODEL [--prompt 8] [--tokens 100] [--threads 1] [--program FILE]

The model takes input_ids, attention_mask, position_ids and past_key_values.N.key/value, and gives logits and
present.N.key/value, as exporters of Hugging Face models have them; or attn_bias and past_k_N, past_v_N, as `make_gpt2.py` has
them. Every token is a length that the session has not
seen. `--program` adds a program file of the model, for one token at a time (`berth build MODEL --dim batch=1 --dim seq=1
--dim past=0..127 --dim total=past+1`), and `--state` one that keeps the cache itself (built with `--state
'past_key_values.*=present.*'`, too); give `--prompt 1`. `--from` begins with that many random rows in the cache. Prints medians over the last three quarters of the tokens: a token as it comes, the same inputs once more (nothing
left to compile), and ONNX Runtime; and the largest difference of the logits.
"""
import argparse
import os
import statistics
import tempfile
import time


def timed(call):
    start = time.perf_counter()
    result = call()
    return result, (time.perf_counter() - start) * 1e3


def empty_cache(inputs, np):
    """Of no tokens: the batch is 1."""
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    caches = [port for port in inputs if port.name.startswith("past_")]
    return {port.name: np.zeros([d if isinstance(d, int) else int(i == 0) for i, d in enumerate(port.shape)],
                                types[port.type]) for port in caches}


def present(name):
    """The output that continues an input."""
    return name.replace("past_key_values", "present") if "." in name else name.replace("past", "present")


class Bound:
    """ONNX Runtime as applications call it: the cache stays in its own values, which are bound as the next token's inputs.
    Binding is a part of the time, as giving inputs is of Berth's."""

    def __init__(self, session, cache):
        from onnxruntime import OrtValue
        self.session = session
        self.names = [port.name for port in session.get_outputs()]
        self.held = {name: OrtValue.ortvalue_from_numpy(value) for name, value in cache.items()}

    def run(self, inputs):
        binding = self.session.io_binding()
        for name, value in inputs.items():
            if name not in self.held:
                binding.bind_cpu_input(name, value)
        for name, value in self.held.items():
            binding.bind_ortvalue_input(name, value)
        for name in self.names:
            binding.bind_output(name)
        self.session.run_with_iobinding(binding)
        results = dict(zip(self.names, binding.get_outputs()))
        self.held = {name: results[present(name)] for name in self.held}
        return results["logits"].numpy()


def with_rows(cache, rows, random, np):
    return {name: random.standard_normal((*value.shape[:2], rows, value.shape[3])).astype(value.dtype)
            for name, value in cache.items()}


def run_state(model, inputs, cache, is_first):
    """What the session keeps is its own, but for the rows that it begins with."""
    own = inputs if is_first else {name: value for name, value in inputs.items() if name not in cache}
    return timed(lambda: model.run(own))


def feeds(cache, tokens, np):
    past = next(iter(cache.values())).shape[2]
    total = past + tokens.shape[1]
    later = np.triu(np.full((total - past, total), -1e9, np.float32), past + 1)
    return {"input_ids": tokens, "attention_mask": np.ones((1, total), np.int64), "attn_bias": later[None, None],
            "position_ids": np.arange(past, total, dtype=np.int64)[None], **cache}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--prompt", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", help="folder of compiled kernels")
    parser.add_argument("--program", help="a program file of the model, measured too")
    parser.add_argument("--state", help="a program file that keeps the cache, measured too")
    parser.add_argument("--from", type=int, default=0, dest="begin", help="rows in the cache at first")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BERTH_CACHE_DIR"] = args.cache or folder
        import numpy as np
        import onnxruntime
        import berth

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        peer = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
        ours = [berth.load(path, threads=args.threads) for path in (args.model, args.program) if path]
        keeper = berth.load(args.state, threads=args.threads, states=True) if args.state else None
        names = [port.name for port in peer.get_outputs()]
        known = {port.name for port in peer.get_inputs()}
        cache = empty_cache(peer.get_inputs(), np)
        random = np.random.default_rng(0)
        cache = with_rows(cache, args.begin, random, np)
        bound = Bound(peer, cache)
        tokens = random.integers(0, 100, (1, args.prompt))
        rows, worst, copied = [], 0.0, []
        for step in range(args.tokens):
            inputs = {name: value for name, value in feeds(cache, tokens, np).items() if name in known}
            wanted, theirs = timed(lambda: dict(zip(names, peer.run(None, inputs))))
            row = [theirs, timed(lambda: bound.run(inputs))[1]]
            for model in ours:
                for _ in range(2):
                    got, time_ms = timed(lambda: model.run(inputs))
                    row.append(time_ms)
                worst = max(worst, float(np.abs(got["logits"].astype(np.float64) - wanted["logits"]).max()))
            if keeper:
                got, time_ms = run_state(keeper, inputs, cache, step == 0)
                row += [time_ms, time_ms]
                copied.append(keeper.copied_bytes)
                worst = max(worst, float(np.abs(got["logits"].astype(np.float64) - wanted["logits"]).max()))
            rows.append(row)
            cache = {name: wanted[present(name)] for name in cache}
            tokens = random.integers(0, 100, (1, 1))
        theirs, of_bound, *times = (statistics.median(column) for column in zip(*rows[len(rows) // 4:]))
        labels = ["session"] + ["program"] * bool(args.program)
        for name, first, again in zip(labels, times[::2], times[1::2]):
            print(f"{name}: ms per token {first:.2f} as it comes, {again:.2f} again; {theirs:.2f} ONNX Runtime, "
                  f"{of_bound:.2f} with its IOBinding")
        if keeper:
            print(f"program with state: ms per token {times[-1]:.2f} as it comes; {theirs:.2f} ONNX Runtime, "
                  f"{of_bound:.2f} with its IOBinding; bytes of the cache copied by a token: {max(copied[1:], default=0)} at most")
        print(f"logits differ by at most {worst:.1e}")


if __name__ == "__main__":
    main()
