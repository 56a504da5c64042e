"""Trains small SentencePiece models, and writes them with the reference library's results.

python spm.py [--small] OUT TEXTS [MODEL...]   (Python packages sentencepiece 0.2.3 and protobuf)

A MODEL is a name of the table below, or the path of a .model file. TEXTS is the number of random texts per model. With
--small, the models keep only the normalisation rules that the texts need: all rules have 170 kB per model.
"""
import base64, gzip, io, json, os, random, struct, sys, tempfile
here = os.path.dirname(os.path.abspath(__file__))
import sentencepiece as sp
from sentencepiece import sentencepiece_model_pb2 as pb

lines = [l for l in open(os.path.join(here, "../../../../shared/data/tinyshakespeare.txt"), encoding="utf-8").read().split("\n") if l.strip()][:6000]
lines += ["été naïve café Straße ÅNGSTRÖM 東京都 大阪 हिन्दी العربية 한국어 👩‍👩‍👧 12,345.67 x² don't DON'T I'LL it's ﬁ ｱ ①"] * 30
lines += ["def f(x):    return x[1:] + {'a': 2}   if x != 3: pass  # comment"] * 30

symbols = ["<sep>", "New York", "abc", "abcd", "👩‍👩‍👧", "é"]
tables = {
    "unigram": dict(model_type="unigram"),
    "unigrambytes": dict(model_type="unigram", byte_fallback=True, normalization_rule_name="identity"),
    "unigramsymbols": dict(model_type="unigram", normalization_rule_name="nfkc", user_defined_symbols=symbols),
    "unigramsuffix": dict(model_type="unigram", normalization_rule_name="nmt_nfkc_cf", treat_whitespace_as_suffix=True),
    "unigramspaces": dict(model_type="unigram", normalization_rule_name="nfkc_cf", remove_extra_whitespaces=False, add_dummy_prefix=False),
    "bpe": dict(model_type="bpe"),
    "bpebytes": dict(model_type="bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, split_digits=True),
    "bpesymbols": dict(model_type="bpe", normalization_rule_name="nfkc", user_defined_symbols=symbols, unk_surface="?", pad_id=3),
    "bpesuffix": dict(model_type="bpe", normalization_rule_name="nmt_nfkc_cf", treat_whitespace_as_suffix=True, byte_fallback=True),
    "bpeacross": dict(model_type="bpe", normalization_rule_name="identity", split_by_whitespace=False, add_dummy_prefix=False),
}

def rules(table):
    """The keys of a precompiled_charsmap with their replacements."""
    size, = struct.unpack("<I", table[:4])
    units, out, found = struct.unpack(f"<{size // 4}I", table[4:4 + size]), table[4 + size:], {}
    offset = lambda u: u >> 10 << ((u & 512) >> 6)
    def walk(place, key):
        for c in range(1, 256):
            p = place ^ c
            if p < len(units) and units[p] & 0x800000ff == c:
                base = p ^ offset(units[p])
                if units[p] >> 8 & 1:
                    start = units[base] & 0x7fffffff
                    found[key + bytes([c])] = out[start:out.index(b"\0", start)].decode()
                walk(base, key + bytes([c]))
    walk(offset(units[0]), b"")
    return found

def fewer(table, texts):
    """A precompiled_charsmap with the rules that texts need."""
    together = "\n".join(texts)
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/rules.tsv", "w") as f:
            for key, value in rules(table).items():
                key = key.decode()
                if key in together: f.write(" ".join(f"{ord(c):x}" for c in key) + "\t" + " ".join(f"{ord(c):x}" for c in value) + "\n")
        model = io.BytesIO()
        sp.SentencePieceTrainer.train(sentence_iterator=iter(lines[:100]), model_writer=model, vocab_size=200, hard_vocab_limit=False, minloglevel=2, normalization_rule_tsv=folder + "/rules.tsv")
    m = pb.ModelProto(); m.ParseFromString(model.getvalue())
    return m.normalizer_spec.precompiled_charsmap

def train(name, texts):
    model = io.BytesIO()
    options = dict(vocab_size=700, hard_vocab_limit=False, character_coverage=0.9995, minloglevel=2, num_threads=1)
    sp.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, **(options | tables[name]))
    m = pb.ModelProto(); m.ParseFromString(model.getvalue())
    if name.endswith("across") or name == "unigramspaces":  # pieces of the middle that no text becomes, and equal scores
        for i, p in enumerate(m.pieces):
            if p.type == 1 and i % 7 == 0 and len(p.piece) > 1: p.type = 5
            if p.type == 1 and i % 3: p.score = float(int(p.score / 8) * 8)
    if small and m.normalizer_spec.precompiled_charsmap:
        m.normalizer_spec.precompiled_charsmap = fewer(m.normalizer_spec.precompiled_charsmap, texts)
    return m.SerializeToString()

words = ["'s", "don't", "été", "e\u0301te\u0301", "東京都", "हिन्दी", "العربية", "한국어", "\u1112\u1161\u11ab", "👩‍👩‍👧", "❤\ufe0f", "🇩🇪", "½²٣१", "Ⅷ",
         "12,345.67", "\x00\x1b\x7f", "\u00ad", "_", "ǅßİIı", "\ufffd", "\ue000", "HelloWorld", "()[]{}", "<s>", "</s>", "<unk>", "<pad>", "<0x41>", "▁", "▁▁", "▁a",
         "a" * 120, "superlongword" * 12, "Å\u030a", "\u212b", "ﬁ", "ｱ", "ｶﾞ", "①", "㌔", "\ufdfa", " ⁇ ", "<sep>", "New York", "abcde", "abcabcd", "Abc"]
ends = ["\n", "\r\n", "\r", " ", "  ", "   ", "\t", "\v", "\u00a0", "\u2028", "\u3000", "\u200b", " \n ", "\u0085", "\ufeff"]

def char(r, most):
    while True:
        c = r.randrange(most)
        if not 0xd800 <= c < 0xe000: return chr(c)

def text(r):
    parts = []
    for _ in range(r.randrange(0, 8)):
        k = r.randrange(7)
        if k in (0, 6): line = r.choice(lines); parts.append(line[:r.randrange(len(line) + 1)])
        elif k == 1: parts.append(r.choice(ends) * r.randrange(1, 4))
        elif k in (2, 3): parts.append(r.choice(words))
        elif k == 4: parts.append(char(r, 0x250))
        else: parts.append(char(r, r.choice([0x3000, 0x10000, 0x110000])))
    return "".join(parts)

small = "--small" in sys.argv
out, n, *names = [a for a in sys.argv[1:] if a != "--small"]
for name in names or tables:
    r, cases = random.Random(1), []
    texts = [text(r) for _ in range(int(n))]
    if not small: texts.append("".join(texts)[:300000])  # so long that the sums of scores lose digits
    proto = train(name, texts) if name in tables else open(name, "rb").read()
    p = sp.SentencePieceProcessor(model_proto=proto)
    for s in texts:
        pieces = p.encode(s, return_type="proto").pieces
        ids = [q.id for q in pieces]
        other = [r.randrange(p.get_piece_size()) for _ in range(r.randrange(12))]
        cases.append({"text": s, "ids": ids, "starts": [q.begin for q in pieces], "ends": [q.end for q in pieces],  # in bytes
                      "decoded": p.decode(ids), "random": other, "randomDecoded": p.decode(other)})
    base = os.path.basename(name).removesuffix(".model")
    with gzip.GzipFile(f"{out}/{base}.json.gz", "wb", mtime=0) as f:
        f.write(json.dumps({"model": base64.b64encode(proto).decode(), "texts": cases}, ensure_ascii=False).encode())
    print(base, p.get_piece_size(), os.path.getsize(f"{out}/{base}.json.gz"))
