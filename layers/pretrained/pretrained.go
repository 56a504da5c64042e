package pretrained

import (
	"strings"

	"github.com/heed-go/heed/internal/text"
)

// architectures lists the architectures that open, each under its model_type.
var architectures = []struct {
	name string
	architecture
}{
	{"llama", llama},
	{"gpt2", gpt2},
	{"qwen2", qwen2},
	{"qwen3", qwen3},
	{"mistral", mistral},
	{"gemma3_text", gemma3},
	{"gpt_neo", gptNeo},
	{"gpt_neox", gptNeoX},
	{"opt", opt},
	{"gemma2", gemma2},
	{"bert", bert},
	{"roberta", roberta("RobertaForMaskedLM", 50265)},
	{"xlm-roberta", roberta("XLMRobertaForMaskedLM", 30522)},
	{"camembert", roberta("CamembertForMaskedLM", 30522)},
	{"distilbert", distilbert},
	{"mpnet", mpnet},
	{"modernbert", modernbert},
}

func architectureOf(kind string) (architecture, error) {
	var known []string
	for _, a := range architectures {
		if a.name == kind {
			return a.architecture, nil
		}
		known = append(known, a.name)
	}
	return architecture{}, unsupported("model_type", kind, "one of "+strings.Join(known, ", ")+text.DidYouMean(kind, known))
}
