"""Times the reference library and this package's benchmark on the families of testdata/published, on one core, in turn.

    pip install tokenizers==0.23.3
    python speed.py TEXT [FAMILY...]

TEXT is a file of English text, such as tinyshakespeare.txt. The numbers are MB/s, for the text in lines and as a whole.
"""
import gzip, json, os, re, subprocess, sys, time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer

folder = os.path.dirname(os.path.abspath(__file__))
path = os.path.abspath(sys.argv[1])
whole = open(path, encoding="utf-8", newline="").read()
size = len(whole.encode())


def reference(t, texts):
    best = 0
    for _ in range(3):
        start = time.perf_counter()
        for text in texts:
            t.encode(text, add_special_tokens=False)
        best = max(best, size / 1e6 / (time.perf_counter() - start))
    return best


def ours(family):
    out = subprocess.run(["go", "test", "-run", "-", "-bench", f"Tokenize/^{family}$", "-count", "3", "-benchtime", "0.3s", "-text", path, "."],
                         cwd=folder + "/..", env=os.environ | {"GOMAXPROCS": "1"}, capture_output=True, text=True, check=True).stdout
    return {kind: max(float(x) for x in re.findall(rf"/{kind}\s.*?([0-9.]+) MB/s", out)) for kind in ("lines", "whole")}


print(f"{'family':12}{'lines':>8}{'library':>9}{'whole':>8}{'library':>9}")
for name in sys.argv[2:] or ["gpt2", "roberta", "cl100k", "llama3", "qwen", "o200k", "bert", "bertcased", "mpnet", "t5", "xlmr", "llama2", "gemma", "mistral"]:
    t = Tokenizer.from_str(json.dumps(json.load(gzip.open(f"{folder}/published/{name}.json.gz"))["tokenizer"]))
    here = ours(name)
    print(f"{name:12}{here['lines']:8.1f}{reference(t, whole.splitlines(keepends=True)):9.1f}{here['whole']:8.1f}{reference(t, [whole]):9.1f}", flush=True)
