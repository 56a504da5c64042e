"""The cases of make.py. Each has a config and, if they aren't the defaults: head ("text"), edit (keys of config.json to
replace or, with None, to remove), files (further JSON files), first (the smallest id that is drawn) and segments (the
number of token types)."""
import transformers as t

small = dict(vocab_size=41, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32)
llama3 = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8)
yarn = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=8, beta_fast=4.0, beta_slow=0.5)

cases = {
    "llama": dict(config=t.LlamaConfig(**small, num_key_value_heads=2, rms_norm_eps=1e-5)),
    "llama-tied": dict(config=t.LlamaConfig(**small | dict(max_position_embeddings=64), num_key_value_heads=1, head_dim=6, attention_bias=True, mlp_bias=True,
                       tie_word_embeddings=True, rope_parameters=llama3 | dict(rope_theta=500.0), eos_token_id=[2, 5]),
                       edit=dict(rope_parameters=None, rope_theta=500.0, rope_scaling=llama3)),
    "llama-yarn": dict(config=t.LlamaConfig(**small, rope_parameters=yarn | dict(rope_theta=10000.0))),
    "llama-classes": dict(config=t.LlamaConfig(**small, pad_token_id=0, num_labels=3), head="classes"),
}
