"""Makes small models that read pairs of texts, and what the reference libraries answer with them.

    python make.py models               writes the models beside this file: two CrossEncoders and two models of inference
    python make.py answers              writes answers.json
    python make.py answers COUNT SEED   prints this number of other cases for each model:

        python make.py answers 200 7 > drawn.json
        go test ./train/model -run Pairs -pairs $PWD/drawn.json

Scores are those of CrossEncoder.rank, and answers about labels are those of the pipeline zero-shot-classification. Made
with Python 3.13, torch 2.15.0, transformers 5.24.0 and sentence-transformers 6.2.0.
"""
import json
import os
import random
import shutil
import sys

import torch
import transformers
from sentence_transformers import CrossEncoder
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast, PreTrainedTokenizerFast, RobertaConfig, RobertaForSequenceClassification

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = "the a cat dog sat on mat is red blue who what ran far sport politics music . , ? this text about example in Zürich \t".split(" ")
SMALL = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, initializer_range=0.7, max_position_embeddings=34)
MODELS = {
    "bert-cross": dict(num_labels=1),
    "roberta-cross": dict(num_labels=1),
    "bert-labels": dict(id2label={0: "contradiction", 1: "neutral", 2: "entailment"}, label2id={"contradiction": 0, "neutral": 1, "entailment": 2}),
    "roberta-labels": dict(id2label={0: "ENTAILMENT", 1: "NOT_ENTAILMENT"}, label2id={"ENTAILMENT": 0, "NOT_ENTAILMENT": 1}),
}


def tokenizer(kind, folder):
    if kind == "bert":
        with open(os.path.join(folder, "vocab.txt"), "w") as f:
            f.write("\n".join("[PAD] [UNK] [CLS] [SEP] [MASK]".split() + [w.lower() for w in WORDS if w.strip()] + ["##s"]))
        return BertTokenizerFast(os.path.join(folder, "vocab.txt"), model_max_length=28)
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    t.train_from_iterator([" ".join(WORDS)] * 9, trainers.BpeTrainer(vocab_size=310, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=t, model_max_length=30, bos_token="<s>", eos_token="</s>", sep_token="</s>", cls_token="<s>", pad_token="<pad>", unk_token="<unk>", mask_token="<mask>")


def make():
    for seed, (name, options) in enumerate(MODELS.items()):
        torch.manual_seed(seed)
        kind, _, head = name.partition("-")
        folder = os.path.join(HERE, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        t = tokenizer(kind, folder)
        if kind == "bert":
            m = BertForSequenceClassification(BertConfig(vocab_size=len(t), **SMALL, **options))
        else:
            m = RobertaForSequenceClassification(RobertaConfig(vocab_size=len(t), type_vocab_size=1, **SMALL, **options))
        m.save_pretrained(folder)
        t.save_pretrained(folder)
        if head == "cross":
            encoder = CrossEncoder(folder, device="cpu", activation_fn=torch.nn.Identity() if kind == "roberta" else None)
            encoder.save(folder)
        for file in ("README.md", "vocab.txt", "tokenizer.model"):
            if os.path.exists(os.path.join(folder, file)):
                os.remove(os.path.join(folder, file))


def text(r, longest):
    words = [r.choice(WORDS + ["cats", "unknown", "Über"]) for _ in range(r.randrange(1, longest))]
    return r.choice(["", " "]) + " ".join(words) + r.choice(["", ".", "\n", "  "])


def rank(encoder, r):
    query, documents = text(r, r.choice([4, 12, 40])), [text(r, r.choice([6, 20, 60])) for _ in range(r.randrange(1, 6))] + [""] * r.randrange(2)
    found = encoder.rank(query, documents)
    return dict(query=query, documents=documents, order=[f["corpus_id"] for f in found], scores=[f["score"] for f in found])


def labels(pipeline, r):
    source, names = text(r, r.choice([6, 20, 60])), r.sample(["sport", "politics", "music", "the red cat", "a dog"], r.randrange(1, 5))
    template, several = r.choice(["This example is {}.", "this text is about {}.", "{}"]), r.random() < 0.4
    found = pipeline(source, candidate_labels=names, hypothesis_template=template, multi_label=several)
    return dict(text=source, names=names, template=template, several=several, labels=found["labels"], scores=found["scores"])


def answers(count, seed):
    out = {}
    for name in MODELS:
        r, folder = random.Random(seed), os.path.join(HERE, name)
        if name.endswith("cross"):
            encoder = CrossEncoder(folder, device="cpu")
            out[name] = [rank(encoder, r) for _ in range(count)]
        else:
            pipeline = transformers.pipeline("zero-shot-classification", model=folder, device="cpu")
            out[name] = [labels(pipeline, r) for _ in range(count)]
    return "{\n" + ",\n".join(json.dumps(n) + ": [\n  " + ",\n  ".join(json.dumps(c) for c in cases) + "\n]" for n, cases in out.items()) + "\n}\n"


torch.set_num_threads(1)
if sys.argv[1] == "models":
    make()
elif len(sys.argv) > 2:
    print(answers(int(sys.argv[2]), int(sys.argv[3])), end="")
else:
    open(os.path.join(HERE, "answers.json"), "w").write(answers(12, 1))
