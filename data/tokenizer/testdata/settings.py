"""Writes settings.json.gz: folders with a tokenizer.json, a tokenizer_config.json and a config.json whose settings are
drawn, so that they often contradict each other, and what AutoTokenizer makes of them.

    python settings.py

Made with Python 3.11, transformers 5.24.0, tokenizers 0.23.3, sentencepiece 0.2.3 and protobuf. Each case has the files
(a SentencePiece model in base64), the ids of texts (with special tokens, also cut to 8 ids), those of two texts, and the
text of some ids. A folder that the reference can't open isn't a case.
"""
import base64
import gzip
import io
import json
import os
import random
import tempfile

import sentencepiece
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer
from transformers.utils import logging

logging.set_verbosity_error()
HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["The Café is open, isn't it?", " two  spaces", "naïve NEW words<new>x <x>Y", "一二 mixed", "a b c d e f g h i j k l m",
         "Don't  stop ."]
CORPUS = ["the cafe is open, isn't it? two spaces. new words: naïve! The Café New Two don't stop . 一二 mixed"] * 4


def wordpiece(rng):
    words = "[PAD] [UNK] [CLS] [SEP] [MASK]".split() + sorted(set("abcdefghijklmnopqrstuvwxyzéïTCN一二,.?!':<>")) + [
        "##" + c for c in "abcdefghijklmnopqrstuvwxyzéï一二"] + "the The cafe café Café new New NEW is open two it <new>".split()
    t = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=rng.random() < 0.5, strip_accents=rng.choice([None, True, False]),
                                              handle_chinese_chars=rng.random() < 0.5)
    t.pre_tokenizer, t.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.add_special_tokens(words[:5])
    return t, dict(cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]")


def bytelevel(rng, special):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=rng.random() < 0.5)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=300, special_tokens=special, show_progress=False,
                                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def gpt2(rng):
    return bytelevel(rng, ["<|endoftext|>"]), dict(bos_token="<|endoftext|>", eos_token="<|endoftext|>", unk_token="<|endoftext|>")


def roberta(rng):
    t = bytelevel(rng, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return t, dict(bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>", unk_token="<unk>", mask_token="<mask>")


def llama(rng):
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    first = rng.choice(["prepend", "first", "never"])
    prepended = [normalizers.Prepend("▁")] if first == "prepend" else []
    t.normalizer = normalizers.Sequence(prepended + [normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=340, special_tokens=special, show_progress=False))
    parts = json.loads(t.to_str())
    parts["added_tokens"] = parts["added_tokens"][:3]
    if first != "prepend":
        parts["normalizer"] = None
        parts["pre_tokenizer"] = dict(type="Metaspace", replacement="▁", prepend_scheme=first, split=False)
    t = Tokenizer.from_str(json.dumps(parts))
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()] +
                                  ([] if first == "never" else [decoders.Strip(" ", 1, 0)]))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return t, dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def unigram(rng):
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + [
        (p, -2 - 0.1 * i) for i, p in enumerate("▁ ▁the ▁The ▁is ▁new ▁two ▁it ▁a".split())] + [
        (c, -8 - 0.01 * i) for i, c in enumerate("abcdefghijklmnopqrstuvwxyzTCNYDEWéï,.?!'<>")] + [("<mask>", 0.0)]
    t = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    scheme = rng.choice(["always", "never"])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme=scheme)])
    t.decoder = decoders.Metaspace(prepend_scheme=scheme)
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    t.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    return t, dict(bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>", unk_token="<unk>", mask_token="<mask>")


def deberta(rng):
    names = dict(cls_token="[CLS]", pad_token="[PAD]", sep_token="[SEP]", unk_token="[UNK]", mask_token="[MASK]")
    t = bytelevel(rng, list(names.values()))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 0), ("[SEP]", 2)])
    return t, names


def firsttoken(rng, unknown, pad):
    pieces = [(pad, 0.0), (unknown, 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0)] + [
        (p, -2 - 0.1 * i) for i, p in enumerate("▁ ▁the ▁The ▁is ▁new ▁two ▁it ▁a ▁' '' `` ▁cafe".split())] + [
        (c, -8 - 0.01 * i) for i, c in enumerate("abcdefghijklmnopqrstuvwxyzTCNYDEWéï,.?!'<>\"")]
    t = Tokenizer(models.Unigram(pieces, unk_id=1, byte_fallback=False))
    t.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Replace(" ", " "), normalizers.NFKC()])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=rng.choice(["always", "never"]))
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.add_special_tokens([pad, unknown, "[CLS]", "[SEP]", "[MASK]"])
    return t, dict(cls_token="[CLS]", sep_token="[SEP]", pad_token=pad, unk_token=unknown, mask_token="[MASK]")


def debertav2(rng): return firsttoken(rng, "[UNK]", "[PAD]")
def albert(rng): return firsttoken(rng, "<unk>", "<pad>")


def piecefile(name, **settings):
    def make(rng):
        """A SentencePiece model without a tokenizer.json."""
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS * 5), model_writer=out, vocab_size=60, hard_vocab_limit=False, character_coverage=1.0,
                                                 minloglevel=2, normalization_rule_name="identity", **settings)
        return name, base64.b64encode(out.getvalue()).decode()
    return make


spm = piecefile("spm.model", pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]")
spiece = piecefile("spiece.model", pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, pad_piece="<pad>", control_symbols="[CLS],[SEP],[MASK]")

KINDS = {  # the model_types, and the classes
    wordpiece: (["bert", "distilbert", "mpnet", "modernbert", None], ["BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "MPNetTokenizer"]),
    gpt2: (["gpt2", "gpt_neo", "opt", "gpt_neox", "qwen2", "modernbert", None], ["GPT2Tokenizer", "GPT2TokenizerFast", "GPTNeoXTokenizerFast", "Qwen2Tokenizer"]),
    roberta: (["roberta", None], ["RobertaTokenizer", "RobertaTokenizerFast"]),
    llama: (["llama", "mistral", None], ["LlamaTokenizer", "LlamaTokenizerFast"]),
    deberta: (["deberta", None], ["DebertaTokenizer", "DebertaTokenizerFast"]),
    debertav2: (["deberta-v2", None], ["DebertaV2Tokenizer", "DebertaV2TokenizerFast"]),
    albert: (["albert", None], ["AlbertTokenizer", "AlbertTokenizerFast"]),
    spm: (["deberta-v2"], ["DebertaV2Tokenizer"]),
    spiece: (["albert"], ["AlbertTokenizer"]),
    unigram: (["xlm-roberta", "camembert", None], ["XLMRobertaTokenizer", "XLMRobertaTokenizerFast", "CamembertTokenizer"]),
}


def draw(rng):
    kind = rng.choice(list(KINDS))
    types, classes = KINDS[kind]
    t, tokens = kind(rng)
    file, model = isinstance(t, str), tokens
    parts, tokens = (dict(added_tokens=[]), {}) if file else (json.loads(t.to_str()), tokens)
    if rng.random() < 0.4:
        parts["truncation"] = dict(direction=rng.choice(["Left", "Right"]), max_length=6, strategy="LongestFirst", stride=0)
    config, settings = {}, dict(tokens)
    if name := rng.choice(types):
        config["model_type"] = name
    if rng.random() < 0.8:
        settings["tokenizer_class"] = rng.choice(classes + ["PreTrainedTokenizerFast", "TokenizersBackend"])
    values = dict(truncation_side=["left", "right"], padding_side=["left", "right"], do_lower_case=[True, False], strip_accents=[True, False, None],
                  tokenize_chinese_chars=[True, False], add_prefix_space=[True, False, None], clean_up_tokenization_spaces=[True, False],
                  legacy=[True, False], split_by_punct=[True, False], keep_accents=[True, False], model_max_length=[8, 8, 10**30])
    for key, choices in values.items():
        if rng.random() < 0.5:
            settings[key] = rng.choice(choices)
    if rng.random() < 0.4 and not file:
        decoder = {str(a["id"]): {k: v for k, v in a.items() if k != "id"} for a in parts["added_tokens"]}
        for name in rng.sample(["<new>", "<x>", "[z]"], rng.randrange(3)):
            decoder[str(t.get_vocab_size() + len(decoder))] = dict(
                content=name, lstrip=rng.random() < 0.5, rstrip=rng.random() < 0.3, single_word=rng.random() < 0.2, normalized=rng.random() < 0.5, special=rng.random() < 0.5)
        settings["added_tokens_decoder"] = decoder
    if file:
        if rng.random() < 0.3:
            config["tokenizer_class"] = classes[0]
        settings.pop("tokenizer_class", None)
        return {t: model, "tokenizer_config.json": json.dumps(settings), "config.json": json.dumps(config)}
    return {"tokenizer.json": json.dumps(parts, ensure_ascii=False), "tokenizer_config.json": json.dumps(settings, ensure_ascii=False), "config.json": json.dumps(config)}


def main():
    cases, rng = [], random.Random(7)
    while len(cases) < 360:
        files = draw(rng)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                with open(os.path.join(folder, name), "wb") as f:
                    f.write(base64.b64decode(content) if name.endswith(".model") else content.encode())
            try:
                t = AutoTokenizer.from_pretrained(folder)
                case = dict(files=files, kind=type(t).__name__, ids=[t(x)["input_ids"] for x in TEXTS],
                            cut=[t(x, truncation=True)["input_ids"] for x in TEXTS], pair=t(TEXTS[0], TEXTS[1])["input_ids"])
                case["decoded"] = [t.decode(t(x, add_special_tokens=False)["input_ids"]) for x in TEXTS]
            except Exception as e:
                print(type(e).__name__, str(e)[:150], files["tokenizer_config.json"][:200])
                continue
        cases.append(case)
    with gzip.GzipFile(os.path.join(HERE, "settings.json.gz"), "wb", mtime=0) as f:
        f.write(json.dumps(dict(texts=TEXTS, cases=cases), ensure_ascii=False, separators=(",", ":")).encode())


main()
