"""Makes folders as several versions of sentence-transformers write them, and the vectors and scores that the newest
version computes from them.

    python make.py weights     writes the weights that all folders share: embed, cross and classes
    python make.py save        writes the folders of the installed version; they get its first number: 2-embed, 2-cross …
    python make.py answer      writes answers.json

Made with Python 3.11 and torch 2.15.0. The folders are from sentence-transformers 2.7.0 with transformers 4.38.2, 3.0.1
with 4.45.2, 5.1.0 with 4.55.4 and 6.2.0 with 5.24.0. The weights and the answers are from the last pair.

A folder lacks its model.safetensors, which is KIND.safetensors beside it. The folder plain is a classifier that
transformers 5.24.0 saved, and left is another, which cuts texts on the left. The folder dense has another layer after pooling.
"""
import json
import os
import shutil
import sys
import tempfile

import sentence_transformers
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog sat on mat is red blue who what ran far . , ?".split()
LABELS = dict(cross=1, classes=3)
TEXTS = ["the cat sat.", "who ran", "the red dog ran far, the blue cat sat on a mat. what is red?", ""]
PAIRS = [["the cat", "who sat?"], ["what is red", "the dog ran far, the blue cat sat on a mat. the cat is red."], ["a", ""]]


def model(kind):
    config = BertConfig(vocab_size=len(WORDS), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
                        max_position_embeddings=32, num_labels=LABELS.get(kind, 2), initializer_range=0.5)
    if kind == "embed":
        return BertModel(config, add_pooling_layer=False)
    return BertForSequenceClassification(config)


def weights():
    torch.manual_seed(1)
    for kind in ("embed", "cross", "classes"):
        save_file(model(kind).state_dict(), os.path.join(HERE, kind + ".safetensors"), {"format": "pt"})


def base(kind, folder, side="right", **config):
    """Writes a folder of transformers."""
    m = model(kind)
    m.config.update(config)
    m.load_state_dict(load_file(os.path.join(HERE, kind + ".safetensors")))
    m.save_pretrained(folder)
    with open(os.path.join(folder, "vocab.txt"), "w") as f:
        f.write("\n".join(WORDS))
    BertTokenizerFast(os.path.join(folder, "vocab.txt"), model_max_length=12, truncation_side=side).save_pretrained(folder)
    return folder


def keep(folder, name):
    """Copies the small files of a folder."""
    target = os.path.join(HERE, name)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("*.safetensors", "README.md", "vocab.txt"))


def save():
    version = sentence_transformers.__version__[0]
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)  # so that config.json names a folder without its place
        if version < "6":
            from sentence_transformers.models import Normalize, Pooling, Transformer
        else:
            from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
        transformer = Transformer(base("embed", "bert"), max_seq_length=10)
        SentenceTransformer(modules=[transformer, Pooling(8), Normalize()], device="cpu").save("embed")
        keep("embed", version + "-embed")
        if version == "6":
            torch.manual_seed(2)
            dense = Dense(8, 6, activation_function=torch.nn.Tanh())
            SentenceTransformer(modules=[transformer, Pooling(8), dense, Normalize()], device="cpu").save("dense")
            keep("dense", "dense-embed")
            shutil.copy(os.path.join("dense", "2_Dense", "model.safetensors"), os.path.join(HERE, "dense-embed", "2_Dense"))
        kinds = ["cross"] if version < "6" else ["cross", "classes"]
        for kind in kinds:
            options = {}
            if version == "5":
                options["activation_fn"] = torch.nn.Identity()
            config = {}
            if version == "2":  # as in the config.json of published models
                config["sbert_ce_default_activation_function"] = "torch.nn.modules.linear.Identity"
            CrossEncoder(base(kind, "base-" + kind, **config), device="cpu", **options).save(kind)
            keep(kind, version + "-" + kind)
        if version == "6":
            keep("base-cross", "plain-cross")
            keep(base("cross", "left-cross", side="left"), "left-cross")


def answer():
    answers = {}
    for name in sorted(os.listdir(HERE)):
        version, _, kind = name.partition("-")
        if not os.path.isdir(os.path.join(HERE, name)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.join(HERE, name), folder, dirs_exist_ok=True)
            shutil.copy(os.path.join(HERE, kind + ".safetensors"), os.path.join(folder, "model.safetensors"))
            if kind == "embed":
                values = SentenceTransformer(folder, device="cpu").encode(TEXTS)
                answers[name] = dict(inputs=TEXTS, values=values.tolist())
            else:
                encoder = CrossEncoder(folder, device="cpu")
                values = encoder.predict(PAIRS, apply_softmax=kind == "classes")
                answers[name] = dict(inputs=["\t".join(p) for p in PAIRS], values=values.reshape(len(PAIRS), -1).tolist())
    with open(os.path.join(HERE, "answers.json"), "w") as f:
        f.write("{\n" + ",\n".join(f"  {json.dumps(n)}: {json.dumps(a)}" for n, a in answers.items()) + "\n}\n")


dict(weights=weights, save=save, answer=answer)[sys.argv[1]]()
