package tokenizer

import (
	"fmt"
	"sort"
	"strings"
)

// A pubPipeline is the tokenizer of a published model. It normalises a text, splits it into pieces, encodes each piece
// with its model, and adds the special tokens of a template: the steps of Hugging Face's tokenizers, with the same
// results.
// Open and Read return Pipelines.
type pubPipeline struct {
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

// pubOptions say where names of special tokens in a text become their ids.
type pubOptions struct {
	special bool   // everywhere in the text,
	plain   []span // except in these parts, which are in order
}

// overlaps reports whether the part of the text from start to end overlaps a plain part.
func (o pubOptions) overlaps(start, end int) bool {
	i := sort.Search(len(o.plain), func(i int) bool { return int(o.plain[i].end) > start })
	return i < len(o.plain) && int(o.plain[i].start) < end
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
	encode(tokens []ptoken, piece string, b *budget) ([]ptoken, error)

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

// encode returns the tokens of a text, which must be UTF-8, before the template trims their parts.
func (p *pubPipeline) encode(text string, o pubOptions) ([]ptoken, error) {
	b := newBudget(len(text))
	tokens := make([]ptoken, 0, len(text)/3)
	add := func(part aligned, token *addedToken) error {
		start, end := part.original(0, len(part.text))
		tokens = append(tokens, ptoken{token.ID, start, end})
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
func (p *pubPipeline) piece(tokens []ptoken, piece aligned) ([]ptoken, error) {
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

// size returns the number of ids.
func (p *pubPipeline) size() int { return len(p.tokens) }

// has reports whether a token has the id.
func (p *pubPipeline) has(id int) bool { return id >= 0 && id < len(p.tokens) && p.tokens[id] != "" }

// decode returns the text of ids.
func (p *pubPipeline) decode(ids []int) (string, error) {
	var text strings.Builder
	next, end := p.stream(func(part string) { text.WriteString(part) })
	for i, id := range ids {
		if !p.has(id) {
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
func (p *pubPipeline) stream(put func(text string)) (next func(id int) error, end func() error) {
	b := newBudget(0)
	token, last := p.decoder.stream(b, bounded(b, func(part string, _, _ bool) { put(part) }))
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
