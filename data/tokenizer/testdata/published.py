"""Trains small tokenizers with the pipelines of published families, and writes them with the reference library's results.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf
    python published.py TEXT                            # writes the fixtures to testdata/published
    python published.py TEXT --out DIR --texts 20000    # a bigger comparison: go test -run TestPublished -published DIR
    python published.py TEXT --out DIR gpt2 bert        # only these families

TEXT is a file of English text to learn from; the committed fixtures come from the first 12,000 lines of tinyshakespeare.txt
(https://github.com/karpathy/char-rnn). Each FAMILY.json.gz has the tokenizer.json, random texts and the library's results.
A case with a "trap" has a text that is easily got wrong. ../cuts.json.gz has Inputs with a maximum length.
"""
import argparse, gzip, io, json, os, random
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, AddedToken, Regex, models, normalizers as N, pre_tokenizers as P, processors, decoders as D, trainers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

corpus = []  # lines to learn from
families = {}  # functions that return a Tokenizer, or a tokenizer.json
traps = {}  # of each family: name -> texts


def family(**cases):
    def add(f):
        families[f.__name__] = f
        traps[f.__name__] = {name.replace("_", " "): [texts] if isinstance(texts, str) else texts for name, texts in cases.items()}
        return f
    return add


# Byte-level BPE.

def bytelevel(pre, normalizer=None, ignore=False, special=("<|endoftext|>",)):
    t = Tokenizer(models.BPE(ignore_merges=ignore))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre, D.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=700, initial_alphabet=P.ByteLevel.alphabet(), special_tokens=list(special), show_progress=False))
    return t


def split(pattern, behavior="isolated", invert=False):
    return P.Sequence([P.Split(Regex(pattern), behavior, invert), P.ByteLevel(add_prefix_space=False, use_regex=False)])


LONG_S = ["it'\u017fo", "IT'S'\u017fo\u017fo", "'\u017fo"]  # 'ſ and o are two pieces, though ſo is a token


@family(merges_as_strings=["the merges of this", "there's then 'tis"], special_tokens_as_text=["a<|endoftext|>b", "<|endoftext|>", "<|endoftext"],
        long_words=["a" * 300 + " b", "the" * 200])
def gpt2():
    file = json.loads(bytelevel(P.ByteLevel(add_prefix_space=False)).to_str())
    file["model"]["merges"] = [" ".join(m) for m in file["model"]["merges"]]
    return file


@family(merges_as_pairs=["the merges of this", "there's then 'tis"],
        mask_takes_the_space_on_its_left=["a <mask>", "a  <mask> b", "<mask> a", " <mask>", "a\n\t<mask><mask>", "a<mask>"],
        offsets_without_spaces=[" a  b ", "a b", "  ", " the  the"])
def roberta():
    t = bytelevel(P.ByteLevel(add_prefix_space=True), special=("<s>", "<pad>", "</s>", "<unk>"))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return t


@family(long_s_is_an_s=LONG_S, three_digits=["1234567 12", "x²³¹½4"])
def cl100k(): return bytelevel(split(CL100K, "removed", True))


@family(ignore_merges=["a qqqqq b", " qqqqq", "qqqqq", " qqqqqq"], long_s_is_an_s=LONG_S)
def llama3():
    t = bytelevel(split(CL100K), ignore=True, special=("<|begin_of_text|>", "<|eot_id|>"))
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", special_tokens=[("<|begin_of_text|>", 0)])])
    file = json.loads(t.to_str())
    file["model"]["vocab"]["Ġqqqqq"] = t.get_vocab_size()  # no merges make this token
    return file


@family(nfc=["e\u0301te\u0301", "\u1112\u1161\u11ab", "A\u030a\u212b", "\u0344\u0958"], digits_alone=["1234 x²"], added_tokens_that_are_not_special=["<tool_call>{}</tool_call>"])
def qwen():
    t = bytelevel(split(QWEN), normalizer=N.NFC(), special=("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    t.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("</tool_call>", normalized=False)])
    return t


@family(words_by_case=["HelloWORLDHello helloWorld", "ǅx日本語Xx", "X's XX'LL x'\u017f", "a/b//\n/"])
def o200k(): return bytelevel(split(O200K))


# WordPiece.

def wordpiece(normalizer, special=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, P.BertPreTokenizer(), D.WordPiece()
    t.train_from_iterator(corpus, trainers.WordPieceTrainer(vocab_size=800, special_tokens=list(special), show_progress=False))
    if "[CLS]" in special:
        t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


@family(clean_text=["a\x00b\x1bc\u00add\u200be\ufffdf", "a\tb\nc\rd\u00a0e\u3000f\u0085g\vh", "\ue000x"],
        spaces_around_chinese_characters=["the東京the", "a\u3041b\U0002b920c\u9fffd\u4dbf", "한국the"],
        strip_accents_null_follows_lowercase=["ÉTÉ naïve", "İI e\u0301"],
        words_over_100_characters=["a" * 99, "a" * 100, "a" * 101 + " a", "é" * 100, "é" * 101],
        clean_up_when_decoding=["do not . , ! ' s n't 'm I've", "a . b"])
def bert(): return wordpiece(N.BertNormalizer())


@family(strip_accents_null_follows_lowercase=["ÉTÉ naïve", "İI e\u0301"])
def bertcased(): return wordpiece(N.BertNormalizer(lowercase=False))


@family(wordpiece_with_s=["the <s> </s> <mask>", "<s>the</s>", "the  <mask> the"])
def mpnet():
    t = wordpiece(N.BertNormalizer(), ("<s>", "<pad>", "</s>", "[UNK]"))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return t


# Unigram, with SentencePiece's normaliser.

def sentencepiece_model():
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter([line for line in corpus if line.strip()]), model_writer=out, vocab_size=500,
                                             model_type="unigram", hard_vocab_limit=False, minloglevel=2, num_threads=1)
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(out.getvalue())
    return model


def unigram(scheme="always", fallback=False, words=False, precompiled=True):
    model = sentencepiece_model()
    vocab = [(p.piece, p.score) for p in model.pieces] + [("<0x%02X>" % b, -20.0) for b in range(256 if fallback else 0)]
    t = Tokenizer(models.Unigram(vocab, 0, fallback))
    t.normalizer = N.Replace(Regex(" {2,}"), " ")
    if precompiled:
        t.normalizer = N.Sequence([N.Precompiled(model.normalizer_spec.precompiled_charsmap), t.normalizer])
    t.pre_tokenizer = P.Metaspace(prepend_scheme=scheme)
    if words:
        t.pre_tokenizer = P.Sequence([P.WhitespaceSplit(), t.pre_tokenizer])
    t.decoder = D.Metaspace(prepend_scheme=scheme)
    if fallback:
        t.decoder = D.Sequence([D.ByteFallback(), t.decoder])
    t.add_special_tokens(["<unk>", "<s>", "</s>", AddedToken("<mask>", lstrip=True)])
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
    return t


CLUSTERS = ["ｶﾞｷﾞ", "e\u0301e\u0323\u0301", "①㍿ﬁ", "\u1112\u1161\u11ab", "Å\u030aÅ", "👩\u200d👩\u200d👧", "\u0e33\u0e4d\u0e32", "a\u00ad\u200bb"]
SCHEMES = ["the cat", " the", "▁the", "a<s>b</s> c", "<s>the", "the  cat ", "  ", "▁"]


@family(precompiled_on_grapheme_clusters=CLUSTERS, metaspace_always=SCHEMES, neighbouring_unknown_characters=["東京the大阪", "x☃☃y☃"])
def t5(): return unigram()
@family(precompiled_on_grapheme_clusters=CLUSTERS, metaspace_after_white_space=SCHEMES, mask_takes_the_space_on_its_left=["a  <mask> b"])
def xlmr(): return unigram(words=True)
@family(metaspace_first=SCHEMES)
def unifirst(): return unigram("first", precompiled=False)
@family(metaspace_never=SCHEMES)
def uninever(): return unigram("never", precompiled=False)
@family(bytes_of_unknown_characters=["東京the", "☃x☃"])
def unibytes(): return unigram(fallback=True)


def tiny(scores):
    t = Tokenizer(models.Unigram([("<unk>", 0.0)] + scores, 0))
    t.decoder = D.Fuse()
    return t


@family(unknown_score_below_the_minimum="ab")  # a and the unknown b: 10.5 + (-3 - 10), more than -3 for ab
def uniknown(): return tiny([("a", 10.5), ("ab", -3.0)])
@family(unknown_score_below_the_minimum="ab")  # 9.5 + (-3 - 10), less than -3
def uniunknown(): return tiny([("a", 9.5), ("ab", -3.0)])
@family(ties=["abc", "abcabc", "aabbcc", "bc", "abab"])
def unities(): return tiny([("a", -1.0), ("b", -1.0), ("c", -1.0), ("ab", -2.0), ("bc", -2.0), ("abc", -3.0), ("ca", -2.0)])


# BPE of characters.

def characters(kind, stripped=True):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    normalizer = {"prepend": N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), "replace": N.Replace(" ", "▁"), "metaspace": None}[kind]
    if kind == "replace":
        t.normalizer = normalizer  # tokens may cross words
    else:
        t.pre_tokenizer = P.Metaspace()
    bytes_ = ["<0x%02X>" % b for b in range(256)]
    t.train_from_iterator([line[:200] for line in corpus], trainers.BpeTrainer(vocab_size=800, special_tokens=["<unk>", "<s>", "</s>"] + bytes_, limit_alphabet=90, show_progress=False, max_token_length=12))
    t.normalizer, t.pre_tokenizer = normalizer, P.Metaspace(prepend_scheme="first", split=False)
    t.decoder = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()] + ([D.Strip(" ", 1, 0)] if stripped else []))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    file = json.loads(t.to_str())
    if kind != "metaspace":
        file["pre_tokenizer"] = None
    file["added_tokens"] = [a for a in file["added_tokens"] if not a["content"].startswith("<0x")]
    return file


BYTES = ["東京the", "<0x41>\x00", "☃x☃", "\U0010ffff"]


@family(prepend_with_replace=SCHEMES, byte_fallback=BYTES, decoder_strips_one_space=["  two", " one", "none", "   "],
        added_token_after_a_prefix=["a <tool> b", "<tool>", "a<tool>b"])
def llama2():
    t = Tokenizer.from_str(json.dumps(characters("prepend")))
    t.add_tokens([AddedToken("<tool>", normalized=True)])
    return t
@family(byte_fallback=BYTES, decoder_strips_no_space=["  two", " one", "none"])
def gemma(): return characters("replace", False)
@family(metaspace_first_without_a_split=SCHEMES)
def mistral(): return characters("metaspace")


def small(fuse):
    t = Tokenizer(models.BPE({"<unk>": 0, "a": 1, "b": 2, "ab": 3}, [("a", "b")], unk_token="<unk>", fuse_unk=fuse))
    t.decoder = D.Fuse()
    return t


@family(fuse_unk=["xyab", "xyz", "axxbxab", "☃☃"])
def fused(): return small(True)
@family(no_fuse_unk=["xyab", "xyz", "axxbxab", "☃☃"])
def unfused(): return small(False)


@family(single_word=["cat concat cats a_cat cat. cat", "cat"], lstrip=["a  left b", "leftleft"], rstrip=["a right  b", "right"],
        normalized=["a CASED cased Cased b", "a EXACT exact b"], special=["a MARK b mark"],
        not_normalised_first=["xEXACTq", "overlap overlaplap LAPx", "LAPover"], leftmost_then_longest=["longlonger longer", "lonlong"])
def added():
    t = wordpiece(N.Sequence([N.BertNormalizer()]))
    t.add_tokens([AddedToken("cat", single_word=True), AddedToken("left", lstrip=True), AddedToken("right", rstrip=True), AddedToken("CASED", normalized=True),
                  AddedToken("EXACT", normalized=False), AddedToken("overLAP", normalized=True), AddedToken("LAPx", normalized=False), AddedToken("exactq", normalized=True),
                  AddedToken("long", normalized=False), AddedToken("longer", normalized=False)])
    t.add_special_tokens([AddedToken("MARK", normalized=False)])
    return t


@family(token_in_the_space_that_the_one_before_takes=["aright  xb", "right  x", "right xb", "right   xb", "right    b", "right  right  x x  x", " x x right", "right  yb", "right \ty"])
def spaces():
    t = Tokenizer(models.BPE({"<unk>": 0, "a": 1, "b": 2, " ": 3}, [], unk_token="<unk>"))
    t.decoder = D.Fuse()
    t.add_tokens([AddedToken("right", rstrip=True, normalized=False), AddedToken("  x", normalized=False), AddedToken("  ", normalized=False),
                  AddedToken(" y", lstrip=True, normalized=False), AddedToken("\ty", rstrip=True, normalized=False)])
    return t


# Random texts.

words = ["'s", "'S", "'t", "'re", "'VE", "'ll", "'d", "'m", "'\u017f", "''", "' s", "it's", "don't'", "\u2019s", "été", "e\u0301te\u0301", "東京都", "हिन्दी", "العربية", "한국어", "\u1112\u1161\u11ab",
         "👩‍👩‍👧", "❤\ufe0f", "🇩🇪", "½²٣१", "Ⅷ", "12,345.67", "1234567", "\x00\x1b\x7f", "\u00ad", "_", "ǅßİIı", "\ufffd", "\ue000", "HelloWorld", "helloWORLD", "XMLParser", "a/b//c/\n", "...\n\n", "()[]{}",
         "<|endoftext|>", "<mask>", " <mask> ", "<s>", "</s>", "<unk>", "[CLS]", "[MASK]", "<pad>", "<|im_start|>", "<tool_call>", "<|eot_id|>", "<0x41>", "▁", "##", "a" * 120, "superlongword" * 12, "Å\u030a", "\u212b", "ﬁ", "ｱ", "①"]
ends = ["\n", "\r\n", "\r", " ", "  ", "   ", "\t", "\v", "\f", "\u00a0", "\u2028", "\u3000", "\u200b", " \n ", "\u0085", "\ufeff"]


def character(r, most):
    while True:
        c = r.randrange(most)
        if not 0xd800 <= c < 0xe000:
            return chr(c)


def random_text(r):
    parts = []
    for _ in range(r.randrange(1, 9)):
        kind = r.randrange(6)
        if kind == 0:
            line = r.choice(corpus)
            parts.append(line[:r.randrange(len(line) + 1)])
        elif kind == 1:
            parts.append(r.choice(ends) * r.randrange(1, 4))
        elif kind < 4:
            parts.append(r.choice(words))
        elif kind == 4:
            parts.append(character(r, 0x250))
        else:
            parts.append(character(r, r.choice([0x3000, 0x10000, 0x110000])))
    return "".join(parts)


# Results. Offsets count bytes here; the library counts characters.

def result(t, text, before, trap):
    cuts = [0]
    for c in text:
        cuts.append(cuts[-1] + len(c.encode()))
    def tokens(e, types=False):
        out = {"ids": e.ids, "starts": [cuts[a] for a, _ in e.offsets], "ends": [cuts[b] for _, b in e.offsets]}
        return out | {"types": e.type_ids} if types else out
    case = {"text": text}
    if trap:
        case["trap"] = trap
    for key, special in ("plain", True), ("special", False):
        t.encode_special_tokens = special
        case[key] = tokens(t.encode(text, add_special_tokens=False))
    if case["special"] == case["plain"]:
        del case["special"]
    t.encode_special_tokens = True
    case["input"] = tokens(t.encode(text), True)
    e = t.encode(text, before)
    case["pair"] = {"ids": e.ids, "types": e.type_ids}
    t.encode_special_tokens = False
    ids = case.get("special", case["plain"])["ids"]
    case["decoded"] = t.decode(ids, skip_special_tokens=False)
    case["skipped"] = t.decode(ids, skip_special_tokens=True)
    return case


def cuts(out):
    """Returns Inputs of random texts that are cut. The maximum length is at least the number of special tokens."""
    r, cases = random.Random(1), []
    for name in ["roberta", "llama3", "bert", "t5", "mistral"] * 60:
        with gzip.open(f"{out}/{name}.json.gz") as f:
            file = json.load(f)["tokenizer"]
        texts = ["".join(r.choice([" ", "the", " a", "  ", "é", "東", ".", " on"]) for _ in range(r.randrange(8))) for _ in range(r.randrange(1, 3))]
        if name == "roberta":
            file["post_processor"]["add_prefix_space"] = r.random() < 0.5
        t = Tokenizer.from_str(json.dumps(file))
        file["truncation"] = {"direction": r.choice(["Left", "Right"]), "strategy": r.choice(["LongestFirst", "OnlyFirst", "OnlySecond"]), "stride": 0,
                              "max_length": max(1, t.num_special_tokens_to_add(len(texts) > 1) + r.randrange(8))}
        case = {"family": name, "texts": texts, "truncation": file["truncation"], "post_processor": file["post_processor"]}
        try:
            e = Tokenizer.from_str(json.dumps(file)).encode(*texts)
            length = lambda i, n: 0 if i is None else len(texts[i][:n].encode())
            case["input"] = {"ids": e.ids, "types": e.type_ids, "starts": [length(i, a) for i, (a, _) in zip(e.sequence_ids, e.offsets)],
                             "ends": [length(i, b) for i, (_, b) in zip(e.sequence_ids, e.offsets)]}
        except Exception:
            pass  # the library can't cut it
        cases.append(case)
    return cases


def write(path, content):
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode())


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("text")
    args.add_argument("families", nargs="*")
    args.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "published"))
    args.add_argument("--texts", type=int, default=300)
    args = args.parse_intermixed_args()
    corpus.extend(open(args.text, encoding="utf-8").read().split("\n")[:12000])
    corpus.extend(["été naïve café Straße ÅNGSTRÖM 東京都 大阪 हिन्दी العربية 한국어 👩‍👩‍👧 12,345.67 x² don't DON'T I'LL it's"] * 30)
    corpus.extend(["def f(x):\n    return x[1:] + {'a': 2}\n\tif x != 3: pass  # comment\r\n"] * 30)
    corpus.extend(["\u017fo " * 9] * 100)
    os.makedirs(args.out, exist_ok=True)
    for name in args.families or list(families) + ["cuts"]:
        if name == "cuts":
            write(f"{args.out}/../cuts.json.gz", cuts(args.out))
            continue
        file = families[name]()
        if isinstance(file, Tokenizer):
            file = json.loads(file.to_str())
        t = Tokenizer.from_str(json.dumps(file))
        r = random.Random(1)
        small = name in ("uniknown", "uniunknown", "unities", "fused", "unfused", "added", "spaces")  # only for their traps
        texts = [(text, trap) for trap, texts in traps[name].items() for text in texts] + [(random_text(r), "") for _ in range(args.texts // 10 if small else args.texts)]
        cases, before = [], texts[0][0]
        for text, trap in texts:
            cases.append(result(t, text, before, trap))
            before = text
        decoded = []
        for _ in range(len(cases) // 5):
            ids = [r.randrange(t.get_vocab_size()) for _ in range(r.randrange(12))]
            decoded.append({"ids": ids, "text": t.decode(ids, skip_special_tokens=False)})
        write(f"{args.out}/{name}.json.gz", {"tokenizer": file, "texts": cases, "decoded": decoded})
        print(name, t.get_vocab_size(), len(cases))


if __name__ == "__main__":
    main()
