package pretrained

import (
	"maps"
	"slices"
	"strings"
)

// The files with settings, by whose names the settings are listed.
const (
	configFile     = "config.json"
	generationFile = "generation_config.json"
	tokenizerFile  = "tokenizer_config.json"
	modulesFile    = "modules.json"
	sentenceFile   = "config_sentence_transformers.json"
	lengthFile     = "sentence_bert_config.json" // the name may have another kind than bert
	adapter        = "adapter_config.json"
)

// A setting says what keys mean that no code reads. Each has a value at which the reference library computes what this
// package computes, or no value changes that.
type setting struct {
	keys string // names with spaces between them; * stands for every other key
	only string // besides null, the supported values as JSON, with bars between them; empty if all are
	why  string // without only: why no value matters
}

// settings lists the keys that no code reads, by the file and, for config.json, also by the model_type. A test compares
// it with the keys that the reference libraries know. Keys that neither knows are ignored, as the reference libraries
// ignore them, except in an adapter.
var settings = map[string][]setting{
	configFile: {
		{keys: "_commit_hash _name_or_path auto_map label2id name_or_path transformers_version", why: "names where the model is from, or repeats another key"},
		{keys: "_attn_implementation attn_implementation _experts_implementation experts_implementation chunk_size_feed_forward dtype pretraining_tp " +
			"distributed_config reorder_and_upcast_attn torch_dtype use_cache", why: "says how the same numbers are computed, or in which precision"},
		{keys: "output_attentions output_hidden_states return_dict", why: "says what a function of the reference library returns"},
		{keys: "initializer_cutoff_factor initializer_factor initializer_range init_std sinusoidal_pos_embds", why: "gives weights their first values, before the file's replace them"},
		{keys: "classifier_dropout qa_dropout seq_classif_dropout gradient_checkpointing hidden_dropout layerdrop decoder_layerdrop encoder_layerdrop " +
			"output_router_logits router_aux_loss_coef", why: "only for training"},
		{keys: "id2label num_labels problem_type", why: "belongs to a head that doesn't open"},
		{keys: "attention_dropout hidden_size max_position_embeddings num_attention_heads num_hidden_layers rms_norm_eps rope_theta",
			why: "not in this architecture, which has another key or none"},
		{keys: "token_classification_bias", why: "not in this architecture, whose head for tags always has a bias, or doesn't open"},
		{keys: "is_causal", why: "an encoder attends to tokens on both sides"},
		{keys: "embedding_size", why: "in other architectures only lets heads be no divisor of hidden_size, which doesn't open"},
		{keys: "cls_token_id sep_token_id mask_token_id", why: "the tokenizer knows its special tokens"},
		{keys: "chain_hidden_post_norm logits_mup_width_multiplier mtp_hidden_states_first kv_sharing_modes unpadded_vocab_size fusion_config",
			why: "belongs to parts that this architecture doesn't have"},
		{keys: "rope_parameters rope_scaling", only: `null|{}`},
		{keys: "partial_rotary_factor original_max_position_embeddings head_dim sliding_window layer_types " +
			"attention_chunk_size per_layer_config transformers_weights", only: `null`},
		{keys: "allow_global_per_layer_attribute_access serialize_explicit_per_layer_config is_encoder_decoder is_decoder add_cross_attention", only: `false`},
	},
	"gpt2": {
		{keys: "scale_attn_weights", only: `true`},
		{keys: "scale_attn_by_inverse_layer_idx", only: `false`},
		{keys: "summary_activation summary_first_dropout summary_last_dropout summary_proj_to_labels summary_type summary_use_proj", why: "belongs to a head that doesn't open"},
	},
	"gpt_neo": {
		{keys: "_is_quantized", why: "says how the same numbers are computed"},
		{keys: "attention_layers", why: "attention_types makes it anew"},
	},
	"gpt_neox": {{keys: "is_decoder", why: "the model is always a decoder"}, {keys: "rope_theta partial_rotary_factor", why: "the names here are rotary_emb_base and rotary_pct"}},
	"gemma2":   {{keys: "use_bidirectional_attention", only: `false`}},
	"gemma3_text": {
		{keys: "attn_logit_softcapping", why: "the reference library's attention doesn't use it"},
		{keys: "_sliding_window_pattern", why: "layer_types, which it made, is there too"},
		{keys: "image_token_id mm_tokens_per_image", why: "for images"},
	},
	"mixtral": {{keys: "router_jitter_noise", why: "only for training"}},
	"qwen3_moe": {
		{keys: "decoder_sparse_step", only: `1`},
		{keys: "mlp_only_layers", only: `[]`},
		{keys: "max_window_layers", why: "the reference library's attention doesn't use it"},
	},
	"phi3":  {{keys: "original_max_position_embeddings", why: "for longrope, which rope_type refuses"}},
	"olmoe": {{keys: "clip_qkv", only: `null`}},
	"deepseek_v2": {
		{keys: "qk_head_dim", why: "the sum of two other keys"},
		{keys: "n_group topk_group", why: "for a topk_method with groups, where they are read"},
	},
	"deepseek_v3": {
		{keys: "qk_head_dim", why: "the sum of two other keys"},
		{keys: "num_mtp_layers num_nextn_predict_layers", why: "counts blocks after the last one, which aren't used"},
	},
	"electra":    {{keys: "summary_activation summary_first_dropout summary_last_dropout summary_proj_to_labels summary_type summary_use_proj", why: "belongs to a head that doesn't open"}},
	"albert":     {{keys: "inner_group_num", only: `1`}, {keys: "classifier_dropout_prob", why: "only for training"}},
	"deberta":    {{keys: "talking_head", only: `false`}, {keys: "cls_dropout pooler_dropout", why: "only for training"}},
	"deberta-v2": {{keys: "conv_kernel_size", only: `0`}, {keys: "conv_act conv_groups", why: "belongs to the convolution that conv_kernel_size refuses"}, {keys: "cls_dropout pooler_dropout", why: "only for training"}},
	"t5":         {{keys: "is_encoder_decoder", why: "the head says it"}},
	"mt5":        {{keys: "is_encoder_decoder", why: "the head says it"}},
	"umt5":       {{keys: "is_encoder_decoder", why: "the head says it"}},
	"opt":        {{keys: "_remove_final_layer_norm", only: `false`}, {keys: "layer_norm_elementwise_affine", only: `true`}},
	"modernbert": {{keys: "deterministic_flash_attn sparse_pred_ignore_index sparse_prediction", why: "says how the same numbers are computed, or which of them"}},

	"rope_parameters": { // and rope_scaling
		{keys: "long_factor mrope_section short_factor", why: "belongs to kinds that rope_type refuses, or to images"},
		{keys: "full_attention sliding_attention", only: `null`},
	},

	generationFile: {
		{keys: "_commit_hash _from_model_config transformers_version", why: "names where the file is from"},
		{keys: "max_length max_new_tokens num_return_sequences", why: "a request says how much it wants"}, // for sequences, code reads some
		{keys: "output_attentions output_hidden_states output_logits output_scores return_dict_in_generate", why: "says what a function of the reference library returns"},
		{keys: "cache_config compile_config continuous_batching_config disable_compile low_memory max_cache_len prefill_chunk_size use_cache",
			why: "says how the same numbers are computed"},
		{keys: "early_stopping length_penalty", why: "for beams, which num_beams refuses"},
		{keys: "remove_invalid_values renormalize_logits", why: "changes no choice between finite logits"},
		{keys: "decoder_start_token_id force_bos_token_to_be_generated", why: "for models with an encoder and a decoder"},
		{keys: "assistant_confidence_threshold assistant_early_exit assistant_ensemble_weight assistant_lookbehind is_assistant max_matching_ngram_size num_assistant_tokens " +
			"num_assistant_tokens_schedule prompt_lookup_num_tokens speculation_type target_lookbehind use_mtp", why: "for a second model that proposes tokens"},
		{keys: "num_beams num_beam_groups typical_p encoder_repetition_penalty guidance_scale", only: `1`},
		{keys: "no_repeat_ngram_size encoder_no_repeat_ngram_size epsilon_cutoff eta_cutoff diversity_penalty penalty_alpha", only: `0`},
		{keys: "bad_words_ids constraints dola_layers exponential_decay_length_penalty force_words_ids forced_bos_token_id forced_eos_token_id max_time sequence_bias " +
			"stop_strings top_h watermarking_config", only: `null`},
		{keys: "token_healing", only: `false`},
		{keys: "cache_implementation", only: `"dynamic"|"dynamic_full"|"hybrid"|"hybrid_chunked"|"offloaded"|"offloaded_hybrid"|"offloaded_static"|"sliding_window"|"static"`},
	},

	tokenizerFile: {
		{keys: "add_bos_token add_eos_token add_prefix_space added_tokens_decoder bos_token chat_template clean_up_tokenization_spaces " +
			"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output cls_token do_lower_case eos_token keep_accents legacy mask_token pad_token sep_token strip_accents " +
			"split_by_punct tokenize_chinese_chars tokenizer_class truncation_side unk_token", why: "package data/tokenizer reads it"},
		{keys: "additional_special_tokens extra_special_tokens model_specific_special_tokens special_tokens_map_file",
			why: "names tokens, which tokenizer.json and added_tokens_decoder have with their ids"},
		{keys: "padding_side", why: "a batch's padding changes no result"},
		{keys: "_commit_hash _json_padding _json_truncation auto_map backend commit_message device_map fast_tokenizer_files files_loaded gguf_file init_inputs is_local " +
			"local_files_only name_or_path processor_class repo_id slow_tokenizer_class token use_source_tokenizer verbose",
			why: "says where the files are from, or how they are found"},
		{keys: "merges merges_file source_spm target_spm target_vocab_file tokenizer tokenizer_file tokenizer_object tokenizer_padding tokenizer_truncation vocab vocab_file",
			why: "the reference library fills it from the other files"},
		{keys: "chat_control_tokens response_schema response_template sanitize_control_tokens", why: "for answers with a form, which Heed doesn't read"},
		{keys: "continuing_subword_prefix end_of_word_suffix trim_offsets unk_id", why: "tokenizer.json has its own"},
		{keys: "use_default_system_prompt", why: "the reference library only keeps it"},
		{keys: "extra_ids mask_token_sent offset separate_vocabs source_lang src_lang target_lang tgt_lang", why: "package data/tokenizer reads it, or tokenizer.json has its effect"},
		{keys: "sp_model_kwargs", why: "says how a library of the reference library is made"},
		{keys: "split_special_tokens", why: "names of special tokens in texts are always ordinary text"},
		{keys: "_spm_precompiled_charsmap fix_mistral_regex initial_alphabet post_processor", only: `false`},
		{keys: "errors", only: `"replace"`},
	},

	modulesFile: {{keys: "idx name", why: "numbers and names the modules"}, {keys: "kwargs", only: `[]`}},
	lengthFile: {
		{keys: "backend unpad_inputs", why: "says how the same numbers are computed"},
		{keys: "do_lower_case", why: "package data/tokenizer reads it"},
		{keys: "config_args config_kwargs model_args model_kwargs processing_kwargs processor_kwargs tokenizer_args", only: `{}`},
		{keys: "document_length query_expansion query_length tokenizer_name_or_path", only: `null`},
	},
	sentenceFile: {
		{keys: "__version__ requirements", why: "names versions of libraries"},
		{keys: "activation_fn keep_in_fp32_modules", why: "belongs to a CrossEncoder"},
		{keys: "truncate_dim", only: `null`},
	},
	"Pooling":   {{keys: "embedding_dimension word_embedding_dimension", why: "repeats hidden_size"}, {keys: "include_prompt", only: `true`}},
	"Dense":     {{keys: "use_residual", only: `false`}, {keys: "module_input_name module_output_name", only: `"sentence_embedding"`}},
	"Normalize": {{keys: "module_input_name module_output_name", only: `"sentence_embedding"`}},

	adapter: {
		{keys: "auto_mapping base_model_name_or_path inference_mode peft_version revision", why: "names where the adapter is from, or how it is used"},
		{keys: "fan_in_fan_out megatron_core qalora_group_size", why: "repeats what the base says, or belongs to a key that is off"},
		{keys: "modules_to_save", why: "the file of weights has their tensors"},
		{keys: "task_type", why: "names the base's head; another head's name is refused"},
		{keys: "alora_invocation_tokens alpha_pattern arrow_config corda_config ensure_weight_tying eva_config exclude_modules kasa_config layer_replication layers_pattern " +
			"layers_to_transform loftq_config lora_bias lora_ga_config megatron_config monteclora_config rank_pattern runtime_config target_parameters " +
			"trainable_token_indices use_bdlora use_dora use_qalora velora_config *", only: `false|[]|{}|""`},
	},
}

// settingOf returns the setting of a key in the first of the tables that has it, or nil.
func settingOf(key string, tables ...string) *setting {
	for _, name := range []string{key, "*"} {
		for _, table := range tables {
			for i, s := range settings[table] {
				for k := range strings.FieldsSeq(s.keys) {
					if k == name {
						return &settings[table][i]
					}
				}
			}
		}
	}
	return nil
}

// refuse keeps an error if a member that wasn't read has a value that isn't supported. The tables are keys of settings.
func (k *keys) refuse(tables ...string) {
	for _, name := range slices.Sorted(maps.Keys(k.values)) {
		value := k.values[name]
		if _, known := k.known[name]; known || value == nil {
			continue
		}
		if s := settingOf(name, tables...); s != nil && s.only != "" && !slices.Contains(strings.Split(s.only, "|"), strings.TrimSuffix(show(value), ".0")) {
			k.fail(unsupported(name, value, strings.ReplaceAll(s.only, "|", " or ")))
		}
	}
}
