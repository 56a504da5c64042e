"""Makes the folders that the tests of this package open, and the values that they expect.

    python make.py            writes the folders and values for all cases, or for those that are named
    python make.py --defaults writes defaults.json: for each model_type, a configuration without settings
    python make.py --check D  opens the folders that Go saved in D, and compares their logits with the expected values

Made with Python 3.13, torch 2.15.0, transformers 5.23.0, safetensors and numpy; gpt2-classes, granite, cohere2 and those whose
names end with -both, -tags, -spans or -several, and models for sequences, with transformers 5.24.0.

Each case is a small model with random weights, which the reference library saves itself. The expected values are
computed in float64 with eager attention. The reference library computes RMSNorm, rotary angles and the softmax of eager
attention in float32 whatever the dtype, so torch.float32 means float64 while it runs. The loss is the mean
cross-entropy over the real tokens or, with several labels, the mean binary cross-entropy, computed from the logits. Padding
is on the right.

NAME/               the published folder
NAME.safetensors    ids (B, T), lengths (B), targets, logits, loss, and grad.PARAMETER for the gradient of each parameter;
                    for sequences, answers (B, 6) with the ids that the decoder reads
"""
import contextlib
import json
import os
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file

from cases import cases

HERE = os.path.dirname(os.path.abspath(__file__))
LENGTHS = [9, 4, 7]
B = len(LENGTHS)
HEADS = dict(text="AutoModelForCausalLM", mask="AutoModelForMaskedLM", classes="AutoModelForSequenceClassification", tags="AutoModelForTokenClassification",
             spans="AutoModelForQuestionAnswering", states="AutoModel", sequence="AutoModelForSeq2SeqLM")


@contextlib.contextmanager
def doubles(on=True):
    """Lets code that asks for float32 get float64."""
    before = torch.float32, torch.Tensor.float, torch.FloatTensor
    torch.float32, torch.Tensor.float, torch.FloatTensor = (torch.float64, torch.Tensor.double, torch.DoubleTensor) if on else (single, to_single, singles)
    torch.float = torch.float32
    torch.set_default_dtype(torch.float32)
    yield
    torch.float32, torch.Tensor.float, torch.FloatTensor = before
    torch.float = torch.float32
    torch.set_default_dtype(torch.float32)


single, to_single, singles = torch.float32, torch.Tensor.float, torch.FloatTensor


def kind_of(case):
    return case.get("model", HEADS[case.get("head", "text")])


def reference(folder, head, kind=None):
    """Opens a folder, and returns its model in float64. Call it with doubles."""
    kind = getattr(transformers, kind or HEADS[head])
    with doubles(False):
        opened = kind.from_pretrained(folder)
    opened.config.dtype = torch.float64
    out = opened.get_output_embeddings() if head in ("text", "mask") else None
    opened.config.tie_word_embeddings &= out is None or out.weight is opened.get_input_embeddings().weight
    opened.config._experts_implementation = "eager"
    model = getattr(kind, "from_config", getattr(kind, "_from_config", None))(opened.config, attn_implementation="eager")
    if head == "sequence" and opened.lm_head.weight is not opened.get_decoder().embed_tokens.weight:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    model.load_state_dict(opened.state_dict())
    for module in model.modules():
        if hasattr(module, "create_weight"):  # sinusoidal positions
            module.weight.data = module.create_weight()
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.requires_grad_(True)
    return model.eval()


def outputs(model, head, values):
    mask = (torch.arange(values["ids"].shape[1])[None] < values["lengths"][:, None]).long()
    inputs = dict(input_ids=values["ids"], attention_mask=mask)
    if "segments" in values:
        inputs["token_type_ids"] = values["segments"]
    if head == "sequence":
        return model(**inputs, decoder_input_ids=values["answers"]).logits, torch.ones_like(values["answers"]).bool()
    out = model(**inputs)
    if head == "spans":
        return torch.stack([out.start_logits, out.end_logits], -1), mask.bool()
    return (out.last_hidden_state if head == "states" else out.logits), mask.bool()


def class_loss(logits, targets):
    """The mean loss of labels (B) or, if a text may have several, of answers to each (B, labels)."""
    if targets.dim() == 2:
        return F.binary_cross_entropy_with_logits(logits, targets.double())
    return F.cross_entropy(logits, targets)


def gradients(model, folder):
    """The gradients of the parameters, by the names that tensors have in files. Those of experts differ."""
    grads = {key: p.grad for key, p in [*model.named_parameters(), *model.named_buffers()] if p.grad is not None}
    if not any(".experts." in key for key in grads):
        return grads
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.copy_(grads.get(key, torch.zeros_like(p)))
        for buffer in model.buffers():  # they have no gradient
            buffer.zero_()
    with tempfile.TemporaryDirectory() as place:
        model.save_pretrained(place)
        return load_file(os.path.join(place, "model.safetensors"))


def make(name, case):
    torch.manual_seed(len(name))
    config = case["config"]
    head = case.get("head", "text")
    folder = os.path.join(HERE, name)
    kind = getattr(transformers, kind_of(case))
    model = kind(config) if "model" in case else kind.from_config(config)
    with torch.no_grad():
        for key, p in model.named_parameters():  # weights that matter: norms aren't 1, biases aren't 0
            if not p.requires_grad:
                continue
            p.copy_(torch.randn_like(p) * (0.2 if p.dim() == 1 else 1.5 / p.shape[-1] ** 0.5) + (1 if p.dim() == 1 and p.abs().sum() > 0 else 0))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    os.system(f"rm -rf {folder}")
    model.save_pretrained(folder, **({"max_shard_size": case["shard"]} if "shard" in case else {}))
    if "tensors" in case:
        path = os.path.join(folder, "model.safetensors")
        save_file({k: v.contiguous() for k, v in case["tensors"](load_file(path)).items()}, path, {"format": "pt"})
    edit(os.path.join(folder, "config.json"), case.get("edit"))
    for file, content in case.get("files", {}).items():
        path = os.path.join(folder, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        json.dump(content, open(path, "w"), indent=1)

    rng = np.random.default_rng(len(name))
    T = case.get("tokens", LENGTHS[0])
    vocab = 36 if head == "sequence" else config.vocab_size  # without the id of padding, whose row of an nn.Embedding has no gradient
    lengths = [T] + LENGTHS[1:]
    values = dict(ids=torch.tensor(rng.integers(case.get("first", 3), vocab, (B, T))), lengths=torch.tensor(lengths))
    pad = config.pad_token_id
    for b, n in enumerate(lengths):
        values["ids"][b, n:] = 0 if pad is None else pad
    for b, n in enumerate(case.get("ends", [])):  # tokens of the text, which the mask has
        values["ids"][b, lengths[b] - n:lengths[b]] = pad
    if "segments" in case:
        values["segments"] = torch.tensor(rng.integers(0, case["segments"], (B, T)))
    if head == "sequence":
        values["answers"] = torch.tensor(rng.integers(3, vocab, (B, 6)))
    with doubles():
        model = reference(folder, head, kind_of(case))
        logits, mask = outputs(model, head, values)
    if head == "classes":
        several = config.problem_type == "multi_label_classification"
        values["targets"] = torch.tensor(rng.integers(0, 2, logits.shape) if several else rng.integers(0, logits.shape[-1], (B,)))
        loss = class_loss(logits, values["targets"])
    else:
        values["targets"] = torch.tensor(rng.integers(0, logits.shape[-1], mask.shape))
        loss = F.cross_entropy(logits[mask], values["targets"][mask])
        logits = logits * mask[..., None]  # the logits of padding don't count
    loss.backward()
    assert logits.dtype == loss.dtype == torch.float64
    values |= dict(logits=logits.detach(), loss=loss.detach().reshape(1))
    for key, grad in gradients(model, folder).items():
        if grad.abs().sum() > 0:
            values["grad." + key] = grad
    save_file({k: v.contiguous() for k, v in values.items()}, folder + ".safetensors")
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(folder) for f in files) + os.path.getsize(folder + ".safetensors")
    print(f"{name}: {size} bytes, loss {loss.item():.6f}")


def edit(path, changes):
    """Replaces keys of a JSON file; None as a change removes the key. The file keeps its sorted keys."""
    content = json.load(open(path))
    for key, value in (changes or {}).items():
        content.pop(key, None)
        if value is not None:
            content[key] = value
    json.dump(content, open(path, "w"), indent=1, sort_keys=True)


def check(folder):
    """Opens what Go saved, in float64, and compares logits."""
    worst = 0
    for name in sorted(os.listdir(folder)):
        head = cases[name].get("head", "text")
        values = load_file(os.path.join(HERE, name + ".safetensors"))
        with doubles():
            logits, mask = outputs(reference(os.path.join(folder, name), head, kind_of(cases[name])), head, values)
        if head != "classes":
            logits = logits * mask[..., None]
        error = ((logits - values["logits"]).abs().max() / values["logits"].abs().max()).item()
        worst = max(worst, error)
        print(f"{name}: {error:.2g}")
    print("largest relative error:", worst)
    assert worst < 1e-9


def defaults():
    """Writes what a config.json without keys means. Old keys are left out, and so are keys that are None."""
    kinds = {case["config"].model_type: type(case["config"]) for case in cases.values()}
    values = {name: {k: v for k, v in kind().to_dict().items() if v is not None} for name, kind in kinds.items()}
    json.dump(values, open(os.path.join(HERE, "defaults.json"), "w"), indent=1, sort_keys=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(sys.argv[2])
    elif sys.argv[1:2] == ["--defaults"]:
        defaults()
    else:
        for name in sys.argv[1:] or cases:
            make(name, cases[name])
