"""Measures how fast Heed and the sentence-transformers library embed the texts of a file on the CPU, for performance.md.
Runs both in turn and prints one JSON object per round, then the medians.

    pip install sentence-transformers && go build -o heed ./cmd/heed
    python3 docs/torch_embed.py ./heed FOLDER FILE.jsonl  # a published model, and rows with the key text

Heed's time is that of the whole command, with opening the model; the other library's is that of encode alone, with its
best batch size in each round.
"""
import json
import statistics
import subprocess
import sys
import tempfile
import time

from sentence_transformers import SentenceTransformer

ROUNDS, SIZES = 5, (8, 16, 32, 64, 128)


def seconds(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def main(heed, folder, file):
    model = SentenceTransformer(folder, device="cpu")
    with open(file, encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    rounds = []
    with tempfile.TemporaryDirectory() as out:
        command = [heed, "embed", folder, "--data", file, "--out", out + "/vectors.npy"]
        for _ in range(ROUNDS):
            ours = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
            theirs, size = min((seconds(lambda: model.encode(texts, batch_size=n)), n) for n in SIZES)
            rounds.append((ours, theirs, theirs / ours))
            print(json.dumps({"heed_s": round(ours, 2), "torch_s": round(theirs, 2), "batch_size": size}), flush=True)
    print(json.dumps(dict(zip(("heed_s", "torch_s", "ratio"), (round(statistics.median(r), 2) for r in zip(*rounds))))))


main(*sys.argv[1:])
