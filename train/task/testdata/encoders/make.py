"""Makes small folders of DeBERTa, DeBERTa-v3, ELECTRA and ALBERT as they are published, with the tokenizer's files of
older versions, and writes answers.json: what the reference library computes from texts, with its own tokenizers.

    python make.py

Made with Python 3.11, torch 2.15.0, transformers 5.24.0, sentencepiece 0.2.3 and protobuf. Weights are random. A pair of
texts has a tab between them, and its second text the token type 1, which this version of AlbertTokenizer leaves out
unless it is asked for. Values are the probabilities of the labels, or the mean of the states.
"""
import io
import json
import os
import shutil

import sentencepiece
import torch
import transformers as t
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["The king is here.\tIs he dead?", "naïve  words and ﬁ\tDon't stop", "``So'' he said\té ☃", " The king  speaks \tx", "it is the cafe\tthe cafe is it"]
CORPUS = ["The king is here. Is he dead? The king speaks. Don't stop; it is the cafe, he said: so naïve words and deeds."] * 9
small = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, max_position_embeddings=64, num_labels=3)
distances = dict(relative_attention=True, pos_att_type="c2p|p2c", position_biased_input=False)


def pieces(size, **settings):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=out, vocab_size=size, hard_vocab_limit=False, minloglevel=2,
                                             normalization_rule_name="identity", **settings)
    return out.getvalue()


def bytepairs():
    special = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    b = Tokenizer(models.BPE())
    b.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    b.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=290, special_tokens=special, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(b.to_str())["model"]
    return json.dumps(model["vocab"], ensure_ascii=False).encode(), "".join(" ".join(m) + "\n" for m in model["merges"]).encode()


def words():
    return "\n".join("[PAD] [UNK] [CLS] [SEP] [MASK] the king is here he dead it cafe so said words and stop don speaks".split()
                     + sorted("abcdefghijklmnopqrstuvwxyz.,?'`;:") + ["##" + c for c in "abcdefghijklmnopqrstuvwxyz"]).encode()


def folder(name, model, files):
    path = os.path.join(HERE, name)
    shutil.rmtree(path, ignore_errors=True)
    torch.manual_seed(len(name))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * (0.2 if p.dim() == 1 else 1.5 / p.shape[-1] ** 0.5) + (1 if p.dim() == 1 and p.abs().sum() > 0 else 0))
    model.save_pretrained(path)
    for file, content in files.items():
        with open(os.path.join(path, file), "wb") as f:
            f.write(content if isinstance(content, bytes) else json.dumps(content).encode())
    tokenizer, embeds = t.AutoTokenizer.from_pretrained(path), name.startswith("electra")
    opened = (t.AutoModel if embeds else t.AutoModelForSequenceClassification).from_pretrained(path).eval()
    inputs = [x.replace("\t", " ") for x in TEXTS] if embeds else TEXTS
    values = []
    for x in inputs:
        with torch.no_grad():
            out = opened(**tokenizer(*x.split("\t"), return_tensors="pt", return_token_type_ids=not embeds))
        values.append((out.last_hidden_state.mean(1) if embeds else out.logits.softmax(-1))[0].tolist())
    print(name, type(tokenizer).__name__, type(opened).__name__, values[0][:3])
    return dict(inputs=inputs, values=values)


def main():
    spm = pieces(90, pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]")
    spiece = pieces(90, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, pad_piece="<pad>", control_symbols="[CLS],[SEP],[MASK]")
    vocab, merges = bytepairs()
    v3 = t.DebertaV2Config(vocab_size=100, position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True, **small, **distances)
    settings = dict(do_lower_case=False, vocab_type="spm")
    answers = {
        "deberta-v3": folder("deberta-v3", t.DebertaV2ForSequenceClassification(v3), {"spm.model": spm, "tokenizer_config.json": settings}),
        "deberta": folder("deberta", t.DebertaForSequenceClassification(t.DebertaConfig(vocab_size=290, **small, **distances)),
                          {"vocab.json": vocab, "merges.txt": merges, "tokenizer_config.json": dict(do_lower_case=False)}),
        "albert": folder("albert", t.AlbertForSequenceClassification(t.AlbertConfig(vocab_size=100, embedding_size=8, **small)), {"spiece.model": spiece}),
        "electra": folder("electra", t.ElectraForPreTraining(t.ElectraConfig(vocab_size=100, embedding_size=8, **small)), {"vocab.txt": words()}),
    }
    json.dump(answers, open(os.path.join(HERE, "answers.json"), "w"), indent=1)


main()
