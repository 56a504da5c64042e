"""Writes pairs.json.gz: small folders of translation and summary models, and what their tokenizers in transformers make
of drawn texts.

    python pairs.py

Made with Python 3.11, transformers 5.24.0, tokenizers 0.23.3, sentencepiece 0.2.3 and protobuf. Each case has the files
(SentencePiece models in base64), the languages, the ids of the texts as sources and as targets, and the texts that the
target's ids decode to without special tokens.
"""
import base64
import codecs
import contextlib
import gzip
import io
import json
import os
import random
import tempfile

import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer
from transformers.utils import logging

logging.set_verbosity_error()
HERE = os.path.dirname(os.path.abspath(__file__))
with contextlib.redirect_stdout(io.StringIO()):
    import this
ENGLISH = codecs.decode(this.s, "rot13").splitlines() * 3
FRENCH = ["Le café est ouvert, n'est-ce pas ?", "Où est la bibliothèque de l'université ?", "Il pleut à Paris depuis trois jours.", "Cela dépend du temps qu'il fera demain.",
          "Nous avons mangé du fromage et bu du vin rouge.", "L'élève a répondu à toutes les questions.", "Ça va très bien, merci beaucoup !"] * 8
RULES = "9\t20\nA\t20\nA0\t20\nBD\t31 2F 32\nFB01\t66 69\n"  # from and to, as code points: fewer than SentencePiece's own, so that files are small
SMALL = dict(hard_vocab_limit=False, character_coverage=0.98, minloglevel=2)


def model(lines, size, **settings):
    out = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write(RULES)
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, vocab_size=size, normalization_rule_tsv=rules.name, **SMALL, **settings)
    return out.getvalue()


def pieces(proto):
    p = sentencepiece.SentencePieceProcessor()
    p.LoadFromSerializedProto(proto)
    return [p.IdToPiece(i) for i in range(p.GetPieceSize())]


def marian(rng, codes=(), separate=False):
    source, target = model(ENGLISH, 200), model(FRENCH, 170)
    words, more = pieces(source)[3:], pieces(target)[3:]
    if not separate:
        words = sorted(set(words) | set(more))
        rng.shuffle(words)
    words = words[:-5]  # these are unknown
    ids = lambda words: json.dumps({w: i for i, w in enumerate(["</s>", "<unk>", *codes, *words, "<pad>"])}, ensure_ascii=False)
    files = {"source.spm": source, "target.spm": target, "vocab.json": ids(words).encode(), "config.json": b'{"model_type": "marian"}',
             "tokenizer_config.json": json.dumps(dict(source_lang="eng", target_lang="fra", model_max_length=512, separate_vocabs=separate)).encode()}
    if separate:
        files["target_vocab.json"] = ids(more).encode()
    return files


def spiece(kind, name, size, **settings):
    def make(rng):
        config = {"tokenizer_class": kind + "Tokenizer"}
        return {name: model(ENGLISH + FRENCH, size, **settings), "tokenizer_config.json": json.dumps(config).encode(),
                "config.json": json.dumps({"model_type": kind.lower().removesuffix("50")}).encode()}
    return make


def bart(rng):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    t.train_from_iterator(ENGLISH + FRENCH, trainers.BpeTrainer(vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False,
                                                                initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    settings = dict(tokenizer_class="BartTokenizer", bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>", unk_token="<unk>",
                    mask_token=dict(__type="AddedToken", content="<mask>", lstrip=True, rstrip=False, single_word=False, normalized=False))
    return {"tokenizer.json": t.to_str().encode(), "tokenizer_config.json": json.dumps(settings).encode(), "config.json": b'{"model_type": "bart"}'}


T5 = spiece("T5", "spiece.model", 260, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
PEGASUS = spiece("Pegasus", "spiece.model", 260, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
MBART, MBART50 = spiece("MBart", "sentencepiece.bpe.model", 260), spiece("MBart50", "sentencepiece.bpe.model", 260)
CASES = [  # files, whether transformers writes a tokenizer.json of them first, the languages
    (lambda r: marian(r), False, None), (lambda r: marian(r, [">>fra<<", ">>deu<<"]), False, None), (lambda r: marian(r, separate=True), False, None),
    (T5, False, None), (T5, True, None), (PEGASUS, False, None), (PEGASUS, True, None), (bart, False, None), (bart, True, None),
    (MBART, True, ("en_XX", "ro_RO")), (MBART50, False, ("fr_XX", "de_DE")), (MBART50, True, ("fr_XX", "uk_UA")),
]


def texts(rng):
    words = " ".join(ENGLISH + FRENCH).split()
    out = ["", " ", "Now is better.", "  two  spaces ", "tab\tand\nline", "naïve façade œuvre", "日本語 is unknown", "Zürich ﬁne ½", "a▁b", "1234567890 !?"]
    for _ in range(60):
        line = " ".join(rng.choice(words) for _ in range(rng.randrange(1, 12)))
        out.append("".join(rng.choice("éß漢x  ") if rng.random() < 0.02 else c for c in line))
    return out + [">>fra<< Now is better.", ">>fra<<Now", ">>xyz<< never", "never >>fra<< now", ">>fra<<", ">> alone"]


def main():
    rng, cases = random.Random(3), []
    drawn = texts(rng)
    for make, write, languages in CASES:
        files = make(rng)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                with open(os.path.join(folder, name), "wb") as f:
                    f.write(content)
            t = AutoTokenizer.from_pretrained(folder)
            if write:
                t.save_pretrained(folder)
                for name in list(files):
                    if name.endswith(".model"):
                        os.remove(os.path.join(folder, name))
                files = {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}
            t = AutoTokenizer.from_pretrained(folder)
            if languages:
                t.src_lang, t.tgt_lang = languages
            case = dict(files={n: base64.b64encode(c).decode() if n.endswith((".model", ".spm")) else c.decode() for n, c in files.items()}, kind=type(t).__name__, languages=languages,
                        ids=[t(x)["input_ids"] for x in drawn], targets=[t(text_target=x)["input_ids"] for x in drawn])
            case["decoded"] = [t.decode(ids, skip_special_tokens=True) for ids in case["targets"]]
            cases.append(case)
    with gzip.GzipFile(os.path.join(HERE, "pairs.json.gz"), "wb", mtime=0) as f:
        f.write(json.dumps(dict(texts=drawn, cases=cases), ensure_ascii=False, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
