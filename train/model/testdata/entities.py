"""Makes small folders with random models for tags, and the entities that transformers' pipeline finds with them.

    python entities.py            writes the folders of this directory, with 12 texts each, for TestEntities
    python entities.py DIR COUNT  writes larger ones to DIR, with COUNT texts each: go test -run TestEntities -entities DIR

Made with Python 3.11, torch 2.15.0, transformers 5.24.0 and tokenizers 0.23. Every folder has entities.json: a list of texts with
the entities for each aggregation_strategy as [label, score, start, end], where start and end count bytes in UTF-8. Texts
that are too long are read with a stride of half the window, or of 128 tokens if that is less.
"""
import json
import os
import random
import sys
import warnings

import torch
import transformers as t
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

WORDS = ("Ann Lee lives in Oslo, near São Paulo's port. Dr. Müller-Lüdenscheidt flew to New York on 3 May 1999! The café \"Zum Löwen\" (Köln) isn't open; "
         "東京 and Київ are cities. naïve coöperation costs €20.50 at example.com/a_b don't stop re-use 1,000 km/h").split(" ")
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC", "B-X-Y"]
STRATEGIES = ["simple", "first", "average", "max", "none"]


def text(r, most):
    parts = []
    for _ in range(r.randint(1, most)):
        word = r.choice(WORDS)
        parts.append(word if r.random() < 0.8 else "".join(r.sample(word, len(word))))
    return "".join(part + r.choice([" ", " ", " ", "  ", "\n", ""]) for part in parts).strip() or "a"


def tokenizers(r):
    """One tokenizer that marks pieces inside words, and two that mark pieces at their start."""
    texts = [text(r, 40) for _ in range(60)] + WORDS
    special = dict(pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>")
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = Tokenizer(models.WordPiece(unk_token="<unk>"))
    pieces.normalizer, pieces.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    pieces.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=150, special_tokens=names, show_progress=False))
    pieces.decoder = decoders.WordPiece()
    nbytes = Tokenizer(models.BPE())
    nbytes.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    nbytes.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=320, special_tokens=names, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    nbytes.decoder = decoders.ByteLevel()
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer, unigram.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    unigram.train_from_iterator(texts, trainers.UnigramTrainer(vocab_size=170, special_tokens=names, unk_token="<unk>", show_progress=False))
    unigram.decoder = decoders.Metaspace()
    for name, tok in ("pieces", pieces), ("bytes", nbytes), ("unigram", unigram):
        ends = [("<s>", tok.token_to_id("<s>")), ("</s>", tok.token_to_id("</s>"))]
        tok.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
        if name == "bytes":
            tok.post_processor = processors.RobertaProcessing(("</s>", ends[1][1]), ("<s>", ends[0][1]), trim_offsets=True)
        yield name, t.PreTrainedTokenizerFast(tokenizer_object=tok, model_max_length=24, **special)


def make(folder, name, tokenizer, r, count):
    torch.manual_seed(r.randrange(1 << 30))
    sizes = dict(vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, id2label=dict(enumerate(LABELS)))
    config = t.BertConfig(**sizes, max_position_embeddings=24) if name == "pieces" else t.RobertaConfig(**sizes, max_position_embeddings=26, type_vocab_size=1)
    model = t.AutoModelForTokenClassification.from_config(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.copy_(torch.randn_like(p) * 1.5 / p.shape[-1] ** 0.5)
        model.classifier.weight.mul_(2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    cases = []
    for i in range(count):
        x = text(r, 8 if i % 3 else 60)
        answers = {}
        for strategy in STRATEGIES:
            room = tokenizer.model_max_length - 2
            long = len(tokenizer(x, add_special_tokens=False, truncation=False)["input_ids"]) > room
            if long and strategy == "none":
                continue
            pipe = t.pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy=strategy, **(dict(stride=min(128, room // 2)) if long else {}))
            place = lambda n: len(x[:n].encode())
            answers[strategy] = [[e.get("entity_group", e.get("entity")), float(e["score"]), place(e["start"]), place(e["end"])] for e in pipe(x)]
        cases.append(dict(text=x, answers=answers))
    json.dump(cases, open(os.path.join(folder, "entities.json"), "w"), ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    t.logging.set_verbosity_error()
    torch.set_num_threads(1)
    place, count = (sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 1 else (os.path.join(os.path.dirname(os.path.abspath(__file__)), "entities"), 12)
    r = random.Random(count)
    for name, tokenizer in tokenizers(r):
        os.makedirs(os.path.join(place, name), exist_ok=True)
        make(os.path.join(place, name), name, tokenizer, r, count)
