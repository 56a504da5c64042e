package pretrained

import (
	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/text"
)

// architectures lists the architectures that open, each under its model_type.
var architectures = choices.Table[architecture]{
	{Name: "llama", Value: llama},
	{Name: "gpt2", Value: gpt2},
	{Name: "qwen2", Value: qwen2},
	{Name: "qwen3", Value: qwen3},
	{Name: "mistral", Value: mistral},
	{Name: "gemma3_text", Value: gemma3},
	{Name: "gpt_neo", Value: gptNeo},
	{Name: "gpt_neox", Value: gptNeoX},
	{Name: "opt", Value: opt},
	{Name: "gemma2", Value: gemma2},
	{Name: "bert", Value: bert},
	{Name: "roberta", Value: roberta("RobertaForMaskedLM", 50265)},
	{Name: "xlm-roberta", Value: roberta("XLMRobertaForMaskedLM", 30522)},
	{Name: "camembert", Value: roberta("CamembertForMaskedLM", 30522)},
	{Name: "distilbert", Value: distilbert},
	{Name: "mpnet", Value: mpnet},
	{Name: "modernbert", Value: modernbert},
	{Name: "electra", Value: electra},
	{Name: "albert", Value: albert},
	{Name: "deberta", Value: deberta},
	{Name: "deberta-v2", Value: debertaV2},
	{Name: "mixtral", Value: mixtral},
	{Name: "qwen3_moe", Value: qwen3MoE},
	{Name: "olmoe", Value: olmoe},
	{Name: "gpt_oss", Value: gptOss},
	{Name: "phi3", Value: phi3},
	{Name: "starcoder2", Value: starcoder2},
	{Name: "olmo2", Value: olmo2},
	{Name: "smollm3", Value: smolLM3},
	{Name: "glm4", Value: glm4},
	{Name: "ernie4_5", Value: ernie45},
	{Name: "stablelm", Value: stableLM},
	{Name: "deepseek_v2", Value: deepseekV2},
	{Name: "deepseek_v3", Value: deepseekV3},
	{Name: "granite", Value: granite},
	{Name: "cohere2", Value: cohere2},
	{Name: "t5", Value: t5},
	{Name: "mt5", Value: mt5},
	{Name: "umt5", Value: umt5},
	{Name: "bart", Value: bart},
	{Name: "mbart", Value: mbart},
	{Name: "marian", Value: marian},
	{Name: "pegasus", Value: pegasus},
}

func architectureOf(kind string) (architecture, error) {
	a, ok := architectures.Get(kind)
	if !ok {
		return a, unsupported("model_type", kind, "one of "+architectures.String()+text.DidYouMean(kind, architectures.Names()))
	}
	return a, nil
}
