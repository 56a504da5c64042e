package tokenizer

import "encoding/json"

// parseDecoder makes the decoder of a tokenizer.json; nil if there is none.
func parseDecoder(part json.RawMessage) (decoder, error) {
	typ, err := typeOf(part)
	if typ == "" || err != nil {
		return nil, err
	}
	switch typ {
	case "ByteLevel":
		return bytesDecoder{}, nil
	}
	return nil, unsupported(typ)
}

// bytesDecoder turns the spellings of bytes into bytes. A token with a character that doesn't stand for a byte stays.
type bytesDecoder struct{}

func (bytesDecoder) decode(tokens []string) []string {
	out := make([]string, len(tokens))
	for i, token := range tokens {
		if bytes, ok := unspell(token); ok {
			token = bytes
		}
		out[i] = token
	}
	return out
}
