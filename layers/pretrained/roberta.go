package pretrained

import (
	"fmt"

	"github.com/heed-go/heed/layers"
)

// roberta returns the architecture of RoBERTa, XLM-RoBERTa and CamemBERT: BERT with other heads. Its table of positions
// begins with two rows that no token has.
func roberta(class string, vocab int) architecture {
	return architecture{
		class: class, prefix: "roberta.", model: postNormModel, classifier: firstToken(layers.Tanh),
		defaults: fmt.Sprintf(`{"vocab_size": %d, "type_vocab_size": 2, %s`, vocab, robertaDefaults),
		config: func(k *keys, c *Config) {
			k.only("pad_token_id", 1) // positions count from this id plus 1
			k.bert(c)
			k.segments(c)
			k.learned("max_position_embeddings", c, 2)
			k.maskHead(c, layers.GELU)
		},
		names: append([]string{"segments embeddings.token_type_embeddings", "positions embeddings.position_embeddings skip2"}, bertNames...),
		heads: robertaHeads,
	}
}

const robertaDefaults = `"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, ` + bertDefaults

var robertaHeads = joined(tokenHeads, map[string][]string{
	"mask":    {"transform.linear lm_head.dense", "transform.norm lm_head.layer_norm", "head.bias lm_head.decoder.bias|lm_head.bias", "head lm_head.decoder"},
	"classes": {"transform.linear classifier.dense", "head classifier.out_proj"},
})
