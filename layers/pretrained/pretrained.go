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
}

func architectureOf(kind string) (architecture, error) {
	a, ok := architectures.Get(kind)
	if !ok {
		return a, unsupported("model_type", kind, "one of "+architectures.String()+text.DidYouMean(kind, architectures.Names()))
	}
	return a, nil
}
