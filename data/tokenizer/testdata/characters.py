"""Asks the reference library about every character, and writes its answers to characters.json.gz.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf
    python characters.py                # writes the fixture; then "go test ../internal/characters -tables" writes its tables.go
    python characters.py --every FILE   # texts with every assigned character: go test -run TestCharacters -characters FILE

The library's parts have tables of different versions of Unicode. "classes" has the ranges of characters that each part treats
alike, and "lower" the lower case of each character. "parts" has tokenizers, with a checksum of the library's results for each 256
characters of one of the lists in "characters". The list "edges" has the characters at the ends of the ranges of classes, and the
list "changed" also those that a normal form or lower case changes.
"""
import argparse, gzip, io, json, os, tempfile, zlib
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
import published
from tokenizers import Tokenizer, AddedToken, Regex, models, normalizers as N, pre_tokenizers as P, decoders as D

families = "bert cl100k gpt2 o200k qwen t5".split()
others = "added bertcased gemma llama2 llama3 mistral mpnet roberta unibytes xlmr".split()  # with the same tables
here = os.path.dirname(os.path.abspath(__file__))
characters = [chr(i) for i in range(0x110000) if not 0xd800 <= i < 0xe000]


def ranges(members):
    out = []
    for i in sorted(map(ord, members)):
        if out and out[-1][1] == i - 1:
            out[-1][1] = i
        else:
            out.append([i, i])
    return out


def precompiled():
    """Returns a normalizer that replaces "a", and the rest of its grapheme cluster with it."""
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/rules.tsv", "w") as f:
            f.write("61\t58\n")
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["the cat sat on the mat"] * 9), model_writer=model, vocab_size=20,
                                                 hard_vocab_limit=False, minloglevel=2, normalization_rule_tsv=folder + "/rules.tsv")
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return N.Precompiled(proto.normalizer_spec.precompiled_charsmap)


def bert(**options):
    return N.BertNormalizer(**(dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False) | options))


def classes():
    first = lambda parts: parts[0][0] if parts else ""
    becomes = lambda normalizer, want: lambda c: normalizer.normalize_str(c) == want
    pattern = lambda p: becomes(N.Replace(Regex(p), ""), "")
    forms, cluster = N.NFKD(), precompiled()
    tests = {
        "letters": pattern(r"\p{L}"), "uppers": pattern(r"[\p{Lu}\p{Lt}]"), "lowers": pattern(r"\p{Ll}"), "marks": pattern(r"\p{M}"),
        "digits": pattern(r"\p{N}"), "spaces": pattern(r"\s"),
        "words": lambda c: first(P.Whitespace().pre_tokenize_str("a" + c)) == "a" + c,
        "numbers": lambda c: len(P.Digits(False).pre_tokenize_str("a" + c)) == 2,
        "punctuation": lambda c: first(P.Punctuation("removed").pre_tokenize_str("a" + c)) == "a",
        "nonspacing": becomes(bert(strip_accents=True), ""), "accents": becomes(N.StripAccents(), ""),
        "removed": becomes(bert(clean_text=True), ""), "blanks": becomes(bert(clean_text=True), " "),
        "decomposed": lambda c: forms.normalize_str(c) != c,
        "extends": lambda c: cluster.normalize_str("a" + c) == "X",
    }
    return {name: ranges(filter(test, characters)) for name, test in tests.items()}


def spelled(normalizer):
    """A tokenizer whose ids are the bytes of the normalised text."""
    t = Tokenizer(models.BPE({"<0x%02X>" % b: b for b in range(256)}, [], byte_fallback=True))
    t.normalizer, t.decoder = normalizer, D.Sequence([D.ByteFallback(), D.Fuse()])
    return t


def pieces(splitter):
    """A tokenizer with a token for each piece."""
    t = Tokenizer(models.BPE({"<unk>": 0}, [], unk_token="<unk>", fuse_unk=True))
    t.pre_tokenizer, t.decoder = splitter, D.Fuse()
    return t


def words(**options):
    t = pieces(None)
    t.add_tokens([AddedToken("word", normalized=False, **options)])
    return t


FORM, WORD = "a\u0301@\u0316@\u0301", "x @A@a@1@ '@'s"  # the character is at each @


def parts(families):
    """Yields a name, a tokenizer, a text to put each character into, and the name of the list of characters."""
    for form in N.NFC, N.NFD, N.NFKC, N.NFKD, N.Lowercase:
        yield form.__name__, spelled(form()), FORM, "changed"
    yield "StripAccents", spelled(N.StripAccents()), FORM, "edges"
    for option in "clean_text", "handle_chinese_chars", "strip_accents", "lowercase":
        yield option, spelled(bert(**{option: True})), FORM, "edges"
    yield "Precompiled", spelled(precompiled()), "a@b@a@\u0301", "edges"  # only clusters below 6 bytes are replaced
    for name in "Whitespace", "WhitespaceSplit", "Punctuation", "Digits", "BertPreTokenizer":
        yield name, pieces(getattr(P, name)()), WORD, "edges"
    for pattern in "GPT2", "CL100K", "QWEN", "O200K":
        yield pattern, pieces(P.Split(Regex(getattr(published, pattern)), "isolated")), WORD, "edges"
    yield "single_word", words(single_word=True), "word@word ", "edges"
    yield "lstrip and rstrip", words(lstrip=True, rstrip=True), "a@word@a", "edges"
    for name in families:
        with gzip.open(f"{here}/published/{name}.json.gz") as f:
            yield name, Tokenizer.from_str(json.dumps(json.load(f)["tokenizer"])), WORD, "edges"


def checksums(t, context, members):
    out = []
    for i in range(0, len(members), 256):
        text = "".join(context.replace("@", c) for c in members[i:i + 256])
        cuts = [0]
        for c in text:
            cuts.append(cuts[-1] + len(c.encode()))
        e = t.encode(text, add_special_tokens=False)
        result = "".join(f"{id} {cuts[a]} {cuts[b]}\n" for id, (a, b) in zip(e.ids, e.offsets)) + t.decode(e.ids, skip_special_tokens=False)
        out.append("%08x" % zlib.crc32(result.encode()))
    return "".join(out)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--every")
    args = args.parse_args()
    found, lowercase, forms = classes(), N.Lowercase(), N.NFKD()
    lower = {c: lowercase.normalize_str(c) for c in characters if lowercase.normalize_str(c) != c}
    assigned = [c for c in characters if c < "\U00040000" or "\U000e0000" <= c < "\U000e1000" or ord(c) % 251 == 0]
    lists = {"edges": assigned, "changed": assigned}
    if not args.every:
        ends = {i for all in found.values() for first, last in all for i in (first - 1, first, last, last + 1)}
        uniform = lambda c: "\u3400" <= c <= "\ud7a3" or "\U00020000" <= c
        lists["edges"] = [c for c in characters if ord(c) in ends]
        lists["changed"] = [c for c in characters if ord(c) in ends or c in lower or forms.normalize_str(c) != c and not uniform(c)]
    out = {"classes": found, "lower": lower, "characters": {name: ranges(list) for name, list in lists.items()}, "parts": []}
    for name, t, context, list in parts(families + others if args.every else families):
        t.encode_special_tokens = True
        part = {"name": name, "context": context, "characters": list, "checksums": checksums(t, context, lists[list])}
        if name not in families + others:
            part["tokenizer"] = json.loads(t.to_str())
        out["parts"].append(part)
        print(name, flush=True)
    with gzip.GzipFile(args.every or here + "/characters.json.gz", "wb", mtime=0) as f:
        f.write(json.dumps(out, ensure_ascii=False, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
