package tokenizer

import "encoding/json"

// A template adds special tokens to one text, or to two, and gives each token a type.
type template struct {
	single, pair []templateItem // nil adds nothing; the types are then 0 and 1
}

// A templateItem is the tokens of a text, or some special tokens.
type templateItem struct {
	text int   // 0 or 1: the first or the second text; -1 for special tokens
	ids  []int // special tokens
	typ  int
}

// An Input is one text, or two, as a model reads them. All slices have one element per token.
type Input struct {
	Tokens []Token // the parts of special tokens of the template are empty
	Texts  []int   // 0 or 1: the text that the token comes from; -1 for special tokens of the template
	Types  []int   // token types, for models that read them
}

// parseTemplate makes the template from the post_processor of a tokenizer.json. It looks up special tokens in p.
func parseTemplate(part json.RawMessage, p *Pipeline) (template, error) {
	typ, err := typeOf(part)
	if typ == "" || err != nil {
		return template{}, err
	}
	switch typ {
	case "ByteLevel": // changes only offsets
		return template{}, nil
	}
	return template{}, unsupported(typ)
}
