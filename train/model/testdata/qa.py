"""Makes small models with random weights that answer questions, and the answers of the reference library's pipeline to
drawn inputs, for TestPipeline.

    python qa.py                     # writes the fixtures to testdata/qa
    python qa.py DIR COUNT SEED      # a bigger comparison: go test -run TestPipeline -qa DIR

Made with torch 2.15.0, transformers 4.57.6 (the last version with this pipeline) and tokenizers 0.22.2. Offsets count
bytes. Answers with the score 0, which fill the list where a context has few parts, are left out.
"""
import json
import os
import random
import sys

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import pipeline

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = """the a of in is was and to for with Berlin Paris river House house naïve café Straße 12 1,500 3.14 don't well-known Ωmega
answer question library model token blue red green. yes, no; (maybe) – “quoted” 東京 日本語 🙂 e-mail x_y 50% U.S. antidisestablishment""".split()
SMALL = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, initializer_range=0.7, hidden_dropout_prob=0, attention_probs_dropout_prob=0)


def wordpiece():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    t.train_from_iterator(WORDS, trainers.WordPieceTrainer(vocab_size=150, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    cls, sep = t.token_to_id("[CLS]"), t.token_to_id("[SEP]")
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    return t


def bytelevel():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    t.train_from_iterator([" ".join(WORDS)] * 3, trainers.BpeTrainer(vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=special, show_progress=False))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return t


def bert(length):
    t = wordpiece()
    c = transformers.BertConfig(vocab_size=t.get_vocab_size(), max_position_embeddings=max(length, 64), **SMALL)
    return transformers.BertForQuestionAnswering(c), transformers.BertTokenizerFast(tokenizer_object=t, model_max_length=length)


def roberta(length):
    t = bytelevel()
    c = transformers.RobertaConfig(vocab_size=t.get_vocab_size(), max_position_embeddings=length + 2, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2, **SMALL)
    return transformers.RobertaForQuestionAnswering(c), transformers.RobertaTokenizerFast(tokenizer_object=t, model_max_length=length)


def text(rng, words):
    return "".join(rng.choice(WORDS) + rng.choice([" "] * 12 + ["  ", "\n", ", ", ""]) for _ in range(words)).strip() or "x"


def draw(folder, make, length, count, rng):
    model, tokenizer = make(length)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    ask = pipeline("question-answering", model=model, tokenizer=tokenizer, device="cpu")
    cases = []
    while len(cases) < count:
        question, context = text(rng, rng.randint(1, 6)), text(rng, rng.choice([3, 10, length // 3, length, 2 * length]))
        top, impossible = rng.choice([1, 1, 3, 5]), rng.random() < 0.5
        try:
            found = ask(question=question, context=context, top_k=top, handle_impossible_answer=impossible)
        except BaseException as e:  # a panic of tokenizers: the question leaves less room than windows share
            if "stride" not in str(e):
                raise
            continue
        found = [a for a in (found if isinstance(found, list) else [found]) if a["score"] > 0]
        if not found:
            continue
        for a in found:
            a["start"], a["end"] = (len(context[:a[k]].encode()) for k in ("start", "end"))
        cases.append(dict(question=question, context=context, top=top, no_answer=impossible, answers=found))
    for name in os.listdir(folder):
        if name not in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            os.remove(os.path.join(folder, name))
    json.dump(cases, open(os.path.join(folder, "answers.json"), "w"), ensure_ascii=False, indent=0)


if __name__ == "__main__":
    out, count, seed = sys.argv[1:] or (os.path.join(HERE, "qa"), 12, 1)
    rng = random.Random(int(seed))
    torch.manual_seed(int(seed))
    sizes = [(bert, 64), (roberta, 48)] + ([(bert, 512), (roberta, 512)] if len(sys.argv) > 1 else [])
    for make, length in sizes:
        draw(os.path.join(out, f"{make.__name__}-{length}"), make, length, int(count), rng)
