"""Makes adapters for the folders of make.py, and the values that the tests of this package expect.

    python make_adapters.py           writes the adapters and values for all cases except most for tags and spans, or for those that are named
    python make_adapters.py --check D opens the adapters that Go saved in D, and compares their logits

Made with the packages that make.py names and peft 0.21.2.

Each adapter is saved by peft, with random weights that float16 holds exactly. Weights of the base are in bfloat16. The expected values are computed in
float64, for the inputs and targets in NAME.safetensors; see make.py.

NAME/adapter/                      the adapter for the folder NAME
NAME/adapter/expected.safetensors  logits, loss, and grad.TENSOR for the gradient of each tensor of the adapter's file
"""
import json
import os
import sys

import peft
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from cases import cases
from make import HERE, class_loss, doubles, kind_of, outputs, reference

TASKS = dict(text="CAUSAL_LM", sequence="SEQ_2_SEQ_LM", classes="SEQ_CLS", tags="TOKEN_CLS", spans="QUESTION_ANS", states="FEATURE_EXTRACTION")

# The settings of peft.LoraConfig that differ from r=2, lora_alpha=3 and target_modules="all-linear". A string is an
# expression.
settings = {
    "llama": dict(r=4, use_rslora=True, target_modules=["q_proj", "v_proj"]),
    "llama-tied": dict(lora_dropout=0.25, target_modules=r".*\.1\.(self_attn\.[kvo]|mlp\.down)_proj", modules_to_save=["norm"]),
    "gpt2": dict(target_modules=["c_attn"], lora_alpha=16),
    "gpt2-untied": dict(modules_to_save=["lm_head", "ln_f"]),
    "gpt_neox": dict(r=3, target_modules=["query_key_value"], modules_to_save=["embed_in"]),
    "bert": dict(target_modules=["query", "value", "output.dense"]),
    "mistral": dict(target_modules=["q_proj", "lm_head"]),  # the file has the base's weights of the head, too
    "opt": dict(target_modules=["q_proj", "fc1"], modules_to_save=["embed_positions"]),
    "gemma2": dict(modules_to_save=["norm"]),
    "distilbert-classes": dict(target_modules=["q_lin", "v_lin", "lin1"]),  # classifier in modules_to_save means pre_classifier, too
    "mixtral": dict(target_modules=["q_proj", "v_proj"]),  # peft's products for experts don't open
    "mixtral-classes": dict(target_modules=["o_proj"]),
    "qwen3_moe": dict(target_modules=["q_proj", "k_proj"]),
    "qwen3_moe-window": dict(target_modules=["o_proj"]),
    "olmoe": dict(target_modules=["q_proj", "o_proj"]),
    "olmoe-states": dict(target_modules=["k_proj"]),
    "deepseek_v2": dict(target_modules=["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"]),
    "deepseek_v2-groups": dict(target_modules=["q_proj", "kv_b_proj"]),
    "deepseek_v3": dict(target_modules=["q_b_proj", "kv_a_proj_with_mqa"]),
    "deepseek_v3-classes": dict(target_modules=["kv_b_proj"]),
    "modernbert": dict(target_modules=["Wqkv", "Wi"], use_rslora=True),
    "bert-tags": dict(target_modules=["query", "value"]),  # all-linear would have the head, which peft trains whole
    "distilbert-spans": dict(target_modules=["q_lin", "lin2"]),
    "llama-tags": dict(target_modules=["q_proj", "down_proj"]),
    "modernbert-tags": dict(target_modules=["Wqkv", "head.dense"]),
}


def results(model, head, values):
    """Returns the logits and the loss of make.py."""
    logits, mask = outputs(model, head, values)
    if head == "classes":
        return logits, class_loss(logits, values["targets"])
    return logits * mask[..., None], F.cross_entropy(logits[mask], values["targets"][mask])


def make(name):
    torch.manual_seed(len(name))
    head, folder = cases[name].get("head", "text"), os.path.join(HERE, name, "adapter")
    values = load_file(os.path.join(HERE, name + ".safetensors"))
    config = peft.LoraConfig(**dict(r=2, lora_alpha=3, target_modules="all-linear", task_type=TASKS.get(head)) | settings.get(name, {}))
    with doubles():
        model = peft.get_peft_model(reference(os.path.join(HERE, name), head, kind_of(cases[name])), config).eval()
        with torch.no_grad():
            for p in model.parameters():
                if p.requires_grad:
                    p.copy_((torch.randn_like(p) * (0.2 if p.dim() == 1 else 1 / p.shape[-1] ** 0.5) + (p.dim() == 1)).to(torch.float16))
        logits, loss = results(model, head, values)
        loss.backward()
    assert logits.dtype == loss.dtype == torch.float64
    os.system(f"rm -rf {folder}")
    model.save_pretrained(folder)
    os.remove(os.path.join(folder, "README.md"))
    path = os.path.join(folder, "adapter_model.safetensors")
    save_file({k: v.to(torch.bfloat16 if "base_layer" in k else torch.float16) for k, v in load_file(path).items()}, path, {"format": "pt"})
    path = os.path.join(folder, "adapter_config.json")
    content = json.load(open(path))
    content["base_model_name_or_path"] = name
    if isinstance(content["target_modules"], list):
        content["target_modules"].sort()
    json.dump(content, open(path, "w"), indent=1, sort_keys=True)
    expected = dict(logits=logits.detach(), loss=loss.detach().reshape(1))
    for key, p in model.named_parameters():
        if p.grad is not None:
            expected["grad." + key.replace(".default", "").replace(".modules_to_save", "")] = p.grad
    save_file({k: v.contiguous() for k, v in expected.items()}, os.path.join(folder, "expected.safetensors"))
    size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
    print(f"{name}: {size} bytes, loss {loss.item():.6f}")


def check(folder):
    """Opens the adapters that Go saved with peft, in float64, and compares logits."""
    worst = 0
    for name in sorted(os.listdir(folder)):
        head = cases[name].get("head", "text")
        values, expected = load_file(os.path.join(HERE, name + ".safetensors")), load_file(os.path.join(HERE, name, "adapter", "expected.safetensors"))
        with doubles():
            model = peft.PeftModel.from_pretrained(reference(os.path.join(HERE, name), head, kind_of(cases[name])), os.path.join(folder, name)).eval()
            logits, _ = results(model, head, values)
        error = ((logits - expected["logits"]).abs().max() / expected["logits"].abs().max()).item()
        worst = max(worst, error)
        print(f"{name}: {error:.2g}")
    print("largest relative error:", worst)
    assert worst < 1e-9


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(sys.argv[2])
    else:
        for name in sys.argv[1:] or [name for name in cases if not name.endswith(("-tags", "-spans")) or name in settings]:
            make(name)
