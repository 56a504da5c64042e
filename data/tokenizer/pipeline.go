package tokenizer

import (
	"fmt"
	"math"
	"strings"
)

// A Pipeline is the tokenizer of a published model. It normalises a text, splits it into pieces, encodes each piece
// with its model, and adds the special tokens of a template: the steps of Hugging Face's tokenizers, with the same
// results.
// Open and Read return Pipelines.
type Pipeline struct {
	normalizer normalizer // nil changes nothing
	splitter   splitter   // nil splits nothing
	model      model
	raw        *addedTokens // searched for in the text
	normal     *addedTokens // searched for in the normalised text
	template   template
	truncation truncation
	decoder    decoder
	special    map[string]int
	tokens     []string     // spelling of each id; empty if no token has the id
	spaced     map[int]bool // ids of added tokens that include white space beside them
	spaces     [][2]int32   // white-space characters at the start and the end of each of the tokens, if the template trims
	unknown    int          // id for unknown text, or -1
	file       []byte       // tokenizer.json
}

// A normalizer changes a text before it is split.
type normalizer interface {
	normalize(a aligned) aligned
}

// A splitter splits a text into pieces, which are encoded separately.
type splitter interface {
	split(a aligned, yield func(aligned))
}

// A model turns a piece into tokens.
type model interface {
	// encode appends the tokens of a piece. Their Start and End count bytes of the piece. It returns an error if the
	// model can't encode a part of the piece and has no unknown token, or if the budget is spent.
	encode(tokens []Token, piece string, b *budget) ([]Token, error)

	vocabulary() []string // spelling of each id; empty if no token has the id
	unknown() int         // id for unknown text, or -1
}

// A decoder turns the spellings of tokens into other tokens. The text is the concatenation of the last decoder's.
type decoder interface {
	// stream returns functions that take a text's tokens, and its end. They pass the decoded tokens on to next, until
	// the budget is spent.
	stream(b *budget, next sink) (sink, func())
}

// A sink takes the next part of a token. First and last say whether the part begins and ends the token.
type sink func(part string, first, last bool)

// Len returns the number of ids, including unknown and special ones.
func (p *Pipeline) Len() int { return len(p.tokens) }

// Unknown returns the id for text that the tokenizer doesn't know, or -1 if it has no such id.
func (p *Pipeline) Unknown() int { return p.unknown }

// Special returns the ids of special tokens by name. Callers must not change the map.
func (p *Pipeline) Special() map[string]int { return p.special }

// Encode implements Tokenizer. It adds no special tokens.
func (p *Pipeline) Encode(text string) ([]int, error) {
	tokens, err := p.Tokenize(text, Options{})
	if err != nil {
		return nil, err
	}
	ids := make([]int, len(tokens))
	for i, t := range tokens {
		ids[i] = t.ID
	}
	return ids, nil
}

// Tokenize implements Tokenizer. It adds no special tokens; with o.Special, it finds the names of special tokens in the
// text. If a token has characters that the text doesn't have, such as a prefix, the part is where they were added. An
// added token that begins with white space may overlap the one before, if that takes the white space after it.
//
// Whatever the tokenizer's file says, a text takes bounded memory and time: Tokenize returns an error if the text
// would grow to more than 16 times its bytes plus 1 MiB, or would have more than 4 tokens per byte plus 2^20, or
// would take more than 400 steps per byte plus 2^22. With published tokenizers, only a long text of characters such as
// ﷺ, which compatibility forms make 11 times as long, comes near these limits.
func (p *Pipeline) Tokenize(text string, o Options) ([]Token, error) {
	tokens, err := p.untrimmed(text, o)
	p.trim(tokens, text)
	return tokens, err
}

// untrimmed returns the tokens of a text before the template trims their parts.
func (p *Pipeline) untrimmed(text string, o Options) ([]Token, error) {
	if len(text) > math.MaxInt32 {
		return nil, fmt.Errorf("a text must have less than 2 GiB, got %d bytes", len(text))
	}
	if err := CheckUTF8(text); err != nil {
		return nil, err
	}
	b := newBudget(len(text))
	tokens := make([]Token, 0, len(text)/3)
	add := func(part aligned, token *addedToken) error {
		start, end := part.original(0, len(part.text))
		tokens = append(tokens, Token{token.ID, start, end})
		return b.add(1)
	}
	err := p.raw.split(aligned{text: text, budget: b}, o, func(part aligned, token *addedToken) error {
		if token != nil {
			return add(part, token)
		}
		if p.normalizer != nil {
			part = p.normalizer.normalize(part)
		}
		if b.spent() {
			return b.err
		}
		return p.normal.split(part, o, func(part aligned, token *addedToken) (err error) {
			switch {
			case token != nil:
				err = add(part, token)
			case p.splitter == nil:
				tokens, err = p.piece(tokens, part)
			default:
				p.splitter.split(part, func(piece aligned) {
					if err == nil {
						tokens, err = p.piece(tokens, piece)
					}
				})
			}
			return err
		})
	})
	if b.spent() { // perhaps by a splitter, which has left out the rest of the text
		err = b.err
	}
	if err != nil {
		return nil, err
	}
	return tokens, nil
}

// piece appends the tokens of a piece.
func (p *Pipeline) piece(tokens []Token, piece aligned) ([]Token, error) {
	if piece.text == "" {
		return tokens, nil
	}
	if piece.budget.take(stepsOfPart * len(piece.text)); piece.budget.spent() {
		return tokens, piece.budget.err
	}
	n := len(tokens)
	tokens, err := p.model.encode(tokens, piece.text, piece.budget)
	if err == nil {
		err = piece.budget.add(len(tokens) - n)
	}
	for i := range tokens[n:] {
		t := &tokens[n+i]
		t.Start, t.End = piece.original(t.Start, t.End)
	}
	return tokens, err
}

// Decode implements Tokenizer. It returns an error if the text would grow to more than 16 times the bytes of its tokens
// plus 1 MiB while it is decoded, or would take more than 400 steps for each of these bytes plus 2^22.
func (p *Pipeline) Decode(ids []int) (string, error) {
	var text strings.Builder
	next, end := p.stream(newBudget(0), func(part string, _, _ bool) { text.WriteString(part) })
	for i, id := range ids {
		if id < 0 || id >= len(p.tokens) || p.tokens[id] == "" {
			return "", fmt.Errorf("id %d at position %d isn't one of the tokenizer's ids, which are below %d", id, i, len(p.tokens))
		}
		if err := next(id); err != nil {
			return "", err
		}
	}
	if err := end(); err != nil {
		return "", err
	}
	return text.String(), nil
}

// stream returns functions that decode the next id, and the end of a text. They pass the text on to put. They return an
// error if the text no longer fits the budget.
func (p *Pipeline) stream(b *budget, put sink) (next func(id int) error, end func() error) {
	token, last := p.decoder.stream(b, bounded(b, put))
	return func(id int) error {
			size := int64(len(p.tokens[id]))
			b.bytes, b.steps = b.bytes+mostGrowth*size, b.steps+mostSteps*size
			token(p.tokens[id], true, true)
			return b.err
		}, func() error {
			last()
			return b.err
		}
}
