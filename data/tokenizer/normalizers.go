package tokenizer

import "encoding/json"

// parseNormalizer makes the normalizer of a tokenizer.json; nil if there is none.
func parseNormalizer(part json.RawMessage) (normalizer, error) {
	typ, err := typeOf(part)
	if typ == "" || err != nil {
		return nil, err
	}
	return nil, unsupported(typ)
}
