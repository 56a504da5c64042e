"""Writes keys.json: the keys that the reference libraries know in each file of a published folder.

    python keys.py

Made with the versions that keys.json names. For config.json, "config.json" has the keys of every configuration class,
and each model_type the others of its class. A key is a field of the class, a name that its __init__ takes from the
other members, an alias, a property that can be set, or what the code of the model, of masks, caches and rotary
positions reads from a configuration. Values that programs set, and methods, aren't keys.
"""
import dataclasses
import importlib
import inspect
import json
import os
import re

import peft
import sentence_transformers
import tokenizers
import transformers
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, pooling
from transformers import CONFIG_MAPPING, GenerationConfig, modeling_rope_utils

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = ("llama gpt2 qwen2 qwen3 mistral gemma3_text gpt_neo gpt_neox opt gemma2 bert roberta xlm-roberta camembert distilbert mpnet "
         "modernbert electra albert deberta deberta-v2 mixtral qwen3_moe olmoe gpt_oss "
         "phi3 starcoder2 olmo2 smollm3 glm4 ernie4_5 stablelm deepseek_v2 deepseek_v3 granite cohere2 t5 mt5 umt5 bart mbart marian pegasus").split()
BASE = transformers.PreTrainedConfig

# Names that a program sets on a configuration, or that its modules read from other objects of the same name.
NOT_KEYS = set("json weight_mapping text_config vision_config default_theta base_model_tp_plan base_model_pp_plan".split())


def source(module):
    return inspect.getsource(importlib.import_module(module))


def taken(text, what=r"\w*kwargs"):
    """The names that a program takes from a dict."""
    return set(re.findall(what + r'\.(?:pop|get)\(\s*"(\w+)"', text)) | set(re.findall(what + r'\["(\w+)"\]', text)) | set(
        re.findall(r'"(\w+)" (?:not )?in ' + what + r"\b(?!\[)", text))


def read(text):
    """The attributes that a program reads from a configuration."""
    return set(re.findall(r"(?<![\w.])(?:self\.)?(?:text_)?config\.([a-z_]\w*)", text)) | set(
        re.findall(r'(?:get|has)attr\(\s*(?:self\.)?(?:text_)?config,\s*"(\w+)"', text))


def is_key(name):
    """Reports whether a file can set an attribute of a configuration."""
    value = inspect.getattr_static(BASE, name, None)
    if isinstance(value, property):
        return value.fset is not None
    return name not in NOT_KEYS and not callable(value) and not isinstance(value, (classmethod, staticmethod))


def settable(cls):
    return {name for name, v in inspect.getmembers_static(cls) if isinstance(v, property) and v.fset is not None}


def config_keys(cls):
    module = inspect.getmodule(cls).__name__
    keys = {f.name for f in dataclasses.fields(cls)} | set(cls().to_dict()) | set(cls.attribute_map) | settable(cls)
    return keys | taken(inspect.getsource(cls), "kwargs") | {x for x in read(source(module.replace("configuration_", "modeling_"))) if is_key(x)}


def common_keys():
    keys = {f.name for f in dataclasses.fields(BASE)} | set(BASE().to_dict()) | settable(BASE)
    keys |= taken(inspect.getsource(BASE.__post_init__), "kwargs")
    for module in ["masking_utils", "cache_utils", "modeling_layers", "modeling_rope_utils", "integrations.sdpa_attention"]:
        keys |= {x for x in read(source("transformers." + module)) if is_key(x)}
    keys |= taken(source("transformers.modeling_rope_utils"), "kwargs") | set(re.findall(r'(?:get|has)attr\(self, "([a-z]\w*)"', source("transformers.modeling_rope_utils")))
    strings = re.findall(r'(?:get|has)attr\(\s*(?:self\.)?config,\s*"(\w+)"', source("transformers.modeling_utils"))
    return keys | {x for x in strings if is_key(x)} | {"auto_map", "quantization_config"}


def tokenizer_keys():
    base = source("transformers.tokenization_utils_base")
    keys = taken(inspect.getsource(transformers.PreTrainedTokenizerBase.__init__), "kwargs") | set(transformers.PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES)
    keys |= taken(base, "init_kwargs") | taken(base, "tokenizer_config") | taken(source("transformers.tokenization_utils_tokenizers"), r"(?:local_|init_)?kwargs")
    keys |= taken(source("transformers.models.auto.tokenization_auto"), "tokenizer_config")
    for kind in TYPES:
        cls = transformers.models.auto.tokenization_auto.TOKENIZER_MAPPING_NAMES.get(kind)
        cls = getattr(transformers, cls or "", None)
        if cls:
            keys |= set(inspect.signature(cls.__init__).parameters) - {"self", "args", "kwargs"}
    return keys


def transformer_keys():
    text = inspect.getsource(Transformer)
    return set(Transformer.config_keys) | set(inspect.signature(Transformer.__init__).parameters) - {"self", "model_name_or_path"} | set(
        re.findall(r'"(\w+_args)": "\w+_kwargs"', text))


def sentence_keys():
    keys = set()
    for name in ["SentenceTransformer", "CrossEncoder"]:
        for cls in getattr(sentence_transformers, name).__mro__:
            if cls.__module__.startswith("sentence_transformers"):
                text = inspect.getsource(cls)
                keys |= taken(text, "model_config")
                for method in re.findall(r"def _get_model_config.*?(?=\n    def )", text, re.S):
                    keys |= set(re.findall(r'^            "(\w+)":', method, re.M)) | set(re.findall(r'config\["(\w+)"\]', method))
    return keys


def main():
    common = common_keys()
    lists = {"config.json": common}
    for kind in TYPES:
        lists[kind] = config_keys(CONFIG_MAPPING[kind]) - common
    rope = set(modeling_rope_utils.RopeParameters.__annotations__) | taken(source("transformers.modeling_rope_utils"), r"rope_parameters(?:_dict)?")
    lists["rope_parameters"] = rope | {"full_attention", "sliding_attention"}
    lists["generation_config.json"] = set(GenerationConfig().to_dict()) | taken(inspect.getsource(GenerationConfig.__init__), "kwargs")
    lists["tokenizer_config.json"] = tokenizer_keys()
    lists["modules.json"] = taken(source("sentence_transformers.base.model"), "module_config") | {"idx", "name", "path", "type"}
    lists["sentence_bert_config.json"] = transformer_keys()
    lists["config_sentence_transformers.json"] = sentence_keys()
    lists["Pooling"] = set(Pooling.config_keys) | set(Pooling.config_key_renames) | set(pooling._LEGACY_POOLING_MODE_KWARGS)
    lists["Dense"] = set(Dense.config_keys)
    lists["Normalize"] = set(Normalize.config_keys)
    lists["adapter_config.json"] = {f.name for f in dataclasses.fields(peft.LoraConfig)} | set(peft.LoraConfig().to_dict())
    versions = {m.__name__: m.__version__ for m in [transformers, tokenizers, sentence_transformers, peft]}
    with open(os.path.join(HERE, "keys.json"), "w") as f:
        lines = [f'  "{name}": "{" ".join(sorted(keys))}"' for name, keys in lists.items()]
        f.write("{\n" + f'  "versions": "{" ".join(f"{k} {v}" for k, v in versions.items())}",\n' + ",\n".join(lines) + "\n}\n")


main()
