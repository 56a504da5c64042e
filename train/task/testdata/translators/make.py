"""Makes small folders of models that translate or summarise, as they are published, and writes answers.json: what the
generate of the reference library answers to drawn texts, with the settings of each folder's generation_config.json.

    python make.py            # 12 texts, as committed
    python make.py 200        # more texts, for a slow comparison: go test ./train/task -run Translators

Made with Python 3.11, torch 2.15.0, transformers 5.24.0, sentencepiece 0.2.3 and protobuf. Weights are random.
"""
import importlib.util
import json
import os
import random
import re
import shutil
import sys

import torch
import transformers as t

HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_num_threads(1)


def script(path):
    spec = importlib.util.spec_from_file_location("pairs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pairs = script(os.path.join(HERE, "../../../../data/tokenizer/testdata/pairs.py"))
bart = dict(d_model=16, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=20, max_position_embeddings=128)
t5 = dict(d_model=16, d_kv=6, d_ff=20, num_layers=2, num_decoder_layers=1, num_heads=2, relative_attention_num_buckets=8, relative_attention_max_distance=20)
t5_tasks = dict(summarization=dict(prefix="summarize: ", num_beams=3, length_penalty=2.0, early_stopping=True, no_repeat_ngram_size=3, min_length=8, max_length=20),
                translation_en_to_fr=dict(prefix="translate English to French: ", max_length=12))
FOLDERS = {  # the model, the files of its tokenizer, generation_config.json, and the options of heed predict
    "marian": (t.MarianMTModel, t.MarianConfig, dict(bart, scale_embedding=True, activation_function="swish"), lambda r: pairs.marian(r),
               dict(num_beams=4, max_length=64, bad_words_ids=["pad"], forced_eos_token_id="eos", renormalize_logits=True), {}),
    "marian-codes": (t.MarianMTModel, t.MarianConfig, dict(bart, scale_embedding=True), lambda r: pairs.marian(r, [">>fra<<", ">>deu<<"]),
                     dict(num_beams=3, max_length=24, bad_words_ids=["pad"], early_stopping=True), dict(target="deu")),
    "marian-two": (t.MarianMTModel, t.MarianConfig, dict(bart, share_encoder_decoder_embeddings=False), lambda r: pairs.marian(r, separate=True),
                   dict(max_length=20, bad_words_ids=["pad"]), {}),
    "t5": (t.T5ForConditionalGeneration, t.T5Config, dict(t5, task_specific_params=t5_tasks), pairs.T5, dict(max_new_tokens=16), {}),
    "t5-summary": (t.T5ForConditionalGeneration, t.T5Config, dict(t5, feed_forward_proj="gated-gelu", tie_word_embeddings=False, task_specific_params=t5_tasks), pairs.T5,
                   {}, dict(prompt="summarization")),
    "bart": (t.BartForConditionalGeneration, t.BartConfig, bart, pairs.bart,
             dict(num_beams=4, max_length=40, min_length=10, no_repeat_ngram_size=3, length_penalty=2.0, early_stopping=True, forced_bos_token_id=0, forced_eos_token_id=2), {}),
    "mbart": (t.MBartForConditionalGeneration, t.MBartConfig, dict(bart, scale_embedding=True), pairs.MBART,
              dict(num_beams=5, max_length=24, repetition_penalty=1.2, early_stopping="never"), dict(source="en_XX", target="ro_RO")),
    "mbart50": (t.MBartForConditionalGeneration, t.MBartConfig, bart, pairs.MBART50,
                dict(num_beams=2, max_length=24, forced_eos_token_id=2), dict(source="fr_XX", target="de_DE")),
    "pegasus": (t.PegasusForConditionalGeneration, t.PegasusConfig, bart, pairs.PEGASUS, dict(num_beams=4, max_length=30, length_penalty=0.6, forced_eos_token_id=1), {}),
}


def folder(name, texts, rng):
    kind, config, sizes, files, generation, options = FOLDERS[name]
    path = os.path.join(HERE, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)

    def write():
        for file, content in made.items():
            if file != "config.json":
                with open(os.path.join(path, file), "wb") as f:
                    f.write(content)

    made = files(rng)
    write()
    with open(os.path.join(path, "config.json"), "wb") as f:
        f.write(made["config.json"])
    tokenizer = t.AutoTokenizer.from_pretrained(path)
    ids = dict(pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, bos_token_id=tokenizer.bos_token_id)
    start, n = {"t5": 0, "pegasus": 0, "bart": 2, "mbart": 2}.get(name.split("-")[0].removesuffix("50"), tokenizer.pad_token_id), len(tokenizer)
    if kind is t.MarianMTModel:
        n = tokenizer.pad_token_id + 1
        if name == "marian-two":
            sizes = dict(sizes, decoder_vocab_size=len(tokenizer.target_encoder))
            ids.update(pad_token_id=len(tokenizer.target_encoder) - 1)
            start = ids["pad_token_id"]
        generation = dict(generation, bad_words_ids=[[start]])
    if generation.get("forced_eos_token_id") == "eos":
        generation = dict(generation, forced_eos_token_id=ids["eos_token_id"])
    model = kind(config(vocab_size=n, decoder_start_token_id=start, **ids, **sizes))
    torch.manual_seed(sum(name.encode()))
    with torch.no_grad():
        for p in filter(lambda p: p.requires_grad, model.parameters()):
            p.copy_(torch.randn_like(p) * (0.2 if p.dim() == 1 else 1.5 / p.shape[-1] ** 0.5) + (1 if p.dim() == 1 and p.abs().sum() > 0 else 0))
    model.tie_weights()
    defaults = dict(decoder_start_token_id=start, eos_token_id=ids["eos_token_id"], pad_token_id=ids["pad_token_id"])
    model.generation_config = t.GenerationConfig(**defaults, **generation)
    model.save_pretrained(path)
    write()
    tokenizer, opened = t.AutoTokenizer.from_pretrained(path), kind.from_pretrained(path).eval()
    given, prefix = {}, ""
    if "prompt" in options:
        given = dict(t5_tasks[options["prompt"]])
        prefix = given.pop("prefix")
    if name == "marian-codes":
        prefix = ">>%s<< " % options["target"]
    elif "target" in options:
        tokenizer.src_lang, tokenizer.tgt_lang = options["source"], options["target"]
        key = "forced_bos_token_id" if name == "mbart50" else "decoder_start_token_id"
        given[key] = tokenizer.convert_tokens_to_ids(options["target"])
    answers = []
    for text in texts:
        out = opened.generate(**tokenizer(prefix + text, return_tensors="pt"), **given)
        answer = tokenizer.decode(out[0], skip_special_tokens=True)
        if name == "marian-two":  # with two vocabularies, the reference doesn't leave out the special tokens of answers
            answer = answer.replace("<pad>", "").replace("</s>", "").strip()
        answers.append(re.sub("�+", "�", answer))
    labels = tokenizer(text_target=texts, padding=True, return_tensors="pt", truncation=True)["input_ids"]
    inputs = tokenizer([prefix + x for x in texts], padding=True, return_tensors="pt")
    labels[labels == tokenizer.pad_token_id] = -100
    loss = opened(**inputs, labels=labels).loss.item() if name != "marian-two" else None  # its padding is another id
    return dict(options=options, inputs=texts, answers=answers, loss=loss)


def main():
    rng, out = random.Random(4), {}
    words = " ".join(pairs.ENGLISH + pairs.FRENCH).split()
    for name in FOLDERS:
        texts = ["Now is better."] + [" ".join(rng.choice(words) for _ in range(rng.randrange(1, 14))) for _ in range(int((sys.argv + ["11"])[1]))]
        out[name] = folder(name, texts, rng)
    with open(os.path.join(HERE, "answers.json"), "w") as f:
        json.dump(out, f, ensure_ascii=False, indent=1)


main()
