// Package published runs the pipeline of a tokenizer.json, with the same results as Hugging Face's tokenizers.
//
// Parse makes a Pipeline from a file. A text passes a normalizer, which changes it, a splitter, which cuts it into
// pieces, and a model, which turns each piece into tokens. Added tokens are found before that. The template adds the
// model's special tokens. A decoder turns the tokens into text again.
package published

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// A Pipeline is the tokenizer of a published model.
type Pipeline struct {
	normalizer normalizer // nil changes nothing
	splitter   splitter   // nil splits nothing
	Model      model
	raw        *addedTokens // found in the text before it is normalised
	normal     *addedTokens // found in the normalised text
	template   template
	truncation truncation
	decoder    decoder
	Special    map[string]int
	Tokens     []string     // spelling of each id; empty if no token has the id
	spaced     map[int]bool // ids of added tokens that include white space beside them
	spaces     [][2]int32   // if the template trims: the number of white-space characters at both ends of each of the Tokens
	Unknown    int          // id for unknown text, or -1
	Prefixed   bool         // the spelling of a piece inside a word begins with a prefix, such as ##
	File       []byte       // the tokenizer.json
	pieces     sync.Pool    // of *[]pipe.Token, for the tokens of one piece
}

// Encode returns the tokens of a text, which must be UTF-8. The template hasn't trimmed their parts yet. T is the
// caller's type of tokens.
func Encode[T ~struct{ ID, Start, End int }](p *Pipeline, text string, o Options) ([]T, error) {
	b := pipe.NewBudget(len(text))
	tokens := make([]T, 0, len(text)/3)
	piece, _ := p.pieces.Get().(*[]pipe.Token)
	if piece == nil {
		piece = new([]pipe.Token)
	}
	defer p.pieces.Put(piece)
	words := 0
	number := func(tokens int) { // the tokens of the next piece
		if o.Words != nil {
			*o.Words = append(*o.Words, slices.Repeat([]int{words}, tokens)...)
		}
		words++
	}
	encode := func(part pipe.Text) (err error) {
		if part.Content == "" {
			return nil
		}
		if b.Take(pipe.StepsOfPart * len(part.Content)); b.Spent() {
			return b.Err
		}
		if *piece, err = p.Model.Encode((*piece)[:0], part.Content, b); err == nil {
			err = b.Add(len(*piece))
		}
		if err != nil {
			return err
		}
		for _, t := range *piece {
			t.Start, t.End = part.Original(t.Start, t.End)
			tokens = append(tokens, T(t))
		}
		number(len(*piece))
		return nil
	}
	add := func(part pipe.Text, token *format.AddedToken) error {
		start, end := part.Original(0, len(part.Content))
		tokens = append(tokens, T{token.ID, start, end})
		number(1)
		return b.Add(1)
	}
	err := p.raw.split(pipe.Text{Content: text, Budget: b}, o, func(part pipe.Text, token *format.AddedToken) error {
		if token != nil {
			return add(part, token)
		}
		if p.normalizer != nil {
			part = p.normalizer.Normalize(part)
		}
		if b.Spent() {
			return b.Err
		}
		return p.normal.split(part, o, func(part pipe.Text, token *format.AddedToken) (err error) {
			switch {
			case token != nil:
				err = add(part, token)
			case p.splitter == nil:
				err = encode(part)
			default:
				p.splitter.split(part, func(piece pipe.Text) {
					if err == nil {
						err = encode(piece)
					}
				})
			}
			return err
		})
	})
	if b.Spent() { // perhaps by a splitter, which has left out the rest of the text
		err = b.Err
	}
	if err != nil {
		return nil, err
	}
	return tokens, nil
}

// Len returns the number of ids.
func (p *Pipeline) Len() int { return len(p.Tokens) }

// Has reports whether a token has the id.
func (p *Pipeline) Has(id int) bool { return id >= 0 && id < len(p.Tokens) && p.Tokens[id] != "" }

// Decode returns the text of ids.
func (p *Pipeline) Decode(ids []int) (string, error) {
	var text strings.Builder
	next, end := p.Stream(func(part string) { text.WriteString(part) })
	for i, id := range ids {
		if !p.Has(id) {
			return "", fmt.Errorf("id %d at position %d isn't one of the tokenizer's ids, which are below %d", id, i, len(p.Tokens))
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

// Stream returns functions that decode the next id, and the end of a text. They pass the text on to put. They return an
// error if the text no longer fits the budget.
func (p *Pipeline) Stream(put func(text string)) (next func(id int) error, end func() error) {
	b := pipe.NewBudget(0)
	token, last := p.decoder.Stream(b, bounded(b, func(part string, _, _ bool) { put(part) }))
	return func(id int) error {
			size := int64(len(p.Tokens[id]))
			b.Bytes, b.Steps = b.Bytes+pipe.MaxGrowth*size, b.Steps+pipe.MaxSteps*size
			token(p.Tokens[id], true, true)
			return b.Err
		}, func() error {
			last()
			return b.Err
		}
}
