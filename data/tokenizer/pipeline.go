package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/folder"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/published"
	"github.com/heed-go/heed/internal/text"
)

// A Pipeline is the tokenizer of a published model. It normalises a text, splits it into pieces, encodes each piece
// with its model, and adds the special tokens of a template: the steps of Hugging Face's tokenizers, with the same
// results. Open and Read return Pipelines.
type Pipeline struct {
	pipeline *published.Pipeline
	limit    *int   // of an Input instead of the file's maximum length; 0 means none
	strategy string // which texts an Input cuts instead of the file's strategy, in the file's words; empty means the file's
	language *int   // of an Input instead of the file's: the id of its code
}

// WithLimit returns a Pipeline whose Input has at most n tokens, whatever the file says. An n of 0 means no limit. If
// the file doesn't say what to cut, the longer text is cut first.
func (p *Pipeline) WithLimit(n int) *Pipeline {
	return &Pipeline{p.pipeline, &n, p.strategy, p.language}
}

// OnlyFirst returns a Pipeline whose Input cuts only the first of two texts, whatever the file says.
func (p *Pipeline) OnlyFirst() *Pipeline {
	return &Pipeline{p.pipeline, p.limit, "OnlyFirst", p.language}
}

// Languages returns the codes of the languages that the tokenizer tells apart, sorted: special tokens such as en_XX, of
// which Input adds one, or tokens such as >>fra<<, which begin a text that a model translates.
func (p *Pipeline) Languages() (codes []string) {
	for _, name := range p.pipeline.Tokens {
		_, special := p.pipeline.Special[name]
		if special && folder.IsLanguage(name) || strings.HasPrefix(name, ">>") && strings.HasSuffix(name, "<<") {
			codes = append(codes, name)
		}
	}
	slices.Sort(codes)
	return codes
}

// WithLanguage returns a Pipeline whose Input adds this one of the Languages that are special tokens.
func (p *Pipeline) WithLanguage(code string) (*Pipeline, error) {
	id, ok := p.pipeline.Special[code]
	if codes := p.Languages(); !ok || !slices.Contains(codes, code) {
		return nil, fmt.Errorf("the tokenizer doesn't know the language %.100q%s", code, text.DidYouMean(code, codes))
	}
	q := *p
	q.language = &id
	return &q, nil
}

// Len returns the number of ids, including unknown and special ones.
func (p *Pipeline) Len() int { return p.pipeline.Len() }

// Unknown returns the id for text that the tokenizer doesn't know, or -1 if it has no such id.
func (p *Pipeline) Unknown() int { return p.pipeline.Unknown }

// Special returns the ids of special tokens by name. Callers must not change the map.
func (p *Pipeline) Special() map[string]int { return p.pipeline.Special }

// Encode implements Tokenizer. It adds no special tokens.
func (p *Pipeline) Encode(text string) ([]int, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	tokens, err := published.Encode[pipe.Token](p.pipeline, text, published.Options{})
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
// text. If a token has only characters that the tokenizer has added, such as a prefix, its part is where they were
// added. If an added token includes the white space after it, its part may overlap the part of the next token.
//
// A text takes bounded memory and time, whatever the tokenizer's file says. Tokenize returns an error if the text would
// grow to more than 16 times its bytes plus 1 MiB, or would have more than 4 tokens per byte plus 2^20, or would take
// more than 400 steps per byte plus 2^22. With published tokenizers, only a long text of characters such as
// ﷺ, which compatibility forms make 11 times as long, comes near these limits.
func (p *Pipeline) Tokenize(text string, o Options) ([]Token, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	tokens, err := published.Encode[Token](p.pipeline, text, published.Options{Special: o.Special})
	if err != nil {
		return nil, err
	}
	for i, t := range tokens {
		tokens[i] = Token(p.pipeline.Trim(pipe.Token(t), i == 0, text))
	}
	return tokens, nil
}

// checkText returns an error if a text is too long or isn't UTF-8.
func checkText(text string) error {
	if len(text) > math.MaxInt32 {
		return fmt.Errorf("a text must have less than 2 GiB, got %d bytes", len(text))
	}
	return checkUTF8(text)
}

// Decode implements Tokenizer. It returns an error if the text would grow to more than 16 times the bytes of its tokens
// plus 1 MiB while it is decoded, or would take more than 400 steps for each of these bytes plus 2^22.
func (p *Pipeline) Decode(ids []int) (string, error) { return p.pipeline.Decode(ids) }

// Continues reports whether a token of a text continues the word of the token before it, as transformers' pipeline for
// token classification decides it. If the file marks pieces inside words, as BERT's do with ##, the token's spelling is
// longer than its part of the text. Otherwise, there is no space before the part and at its start.
func (p *Pipeline) Continues(t Token, text string) bool {
	part := text[t.Start:t.End]
	switch {
	case t.ID == p.Unknown():
		return false
	case p.pipeline.Prefixed:
		return utf8.RuneCountInString(p.pipeline.Tokens[t.ID]) != utf8.RuneCountInString(part)
	}
	return t.Start > 0 && text[t.Start-1] != ' ' && !strings.HasPrefix(text[t.Start:], " ")
}

// An Input is one text, or two, as a model reads them. All slices have one element per token.
type Input struct {
	Tokens []Token // the parts of the template's tokens are empty
	Texts  []int   // 0 or 1: the text that the token comes from; -1 for a token of the template
	Types  []int   // token types, for models that read them
	Words  []int   // the number in its text of the piece, such as a word, that the token is a part of; -1 for a token of the template
}

// CutsStart reports whether Input cuts the start of a text that is too long, and not its end.
func (p *Pipeline) CutsStart() bool { return p.pipeline.CutsStart() }

// Input returns a text, or two texts, with the special tokens of the file's template. If the file has a maximum length,
// Input cuts the texts: the longer text first, or as the file says. Names of special tokens in the texts are ordinary
// text. Input returns the errors of Tokenize, and an error if pair has more than one text, or if the only text that the
// file says to cut is missing or too short.
func (p *Pipeline) Input(text string, pair ...string) (Input, error) {
	texts := append([]string{text}, pair...)
	for _, text := range texts {
		if err := checkText(text); err != nil {
			return Input{}, err
		}
	}
	var input Input
	limit := -1
	if p.limit != nil {
		limit = max(0, *p.limit)
	}
	err := p.pipeline.Input(texts, limit, p.strategy, func(t pipe.Token, source, word, typ int) {
		if source < 0 && p.language != nil && folder.IsLanguage(p.pipeline.Tokens[t.ID]) {
			t.ID = *p.language
		}
		input.add(t, source, word, typ)
	})
	if err != nil {
		return Input{}, err
	}
	return input, nil
}

func (i *Input) add(t pipe.Token, text, word, typ int) {
	i.Tokens, i.Texts, i.Types = append(i.Tokens, Token(t)), append(i.Texts, text), append(i.Types, typ)
	i.Words = append(i.Words, word)
}

// Windows is like Input for a text that may be longer than limit tokens: it returns Inputs of up to limit tokens, which
// together have all tokens of the text. Each shares stride tokens of the text with the one before it, but not below 0
// nor more than half of its tokens. Windows returns the errors of Tokenize, and an error if the special tokens leave no
// room.
func (p *Pipeline) Windows(text string, limit, stride int) (windows []Input, err error) {
	if err = checkText(text); err != nil {
		return nil, err
	}
	err = p.pipeline.Windows(text, limit, stride, func(window int, t pipe.Token, source, word, typ int) {
		if window == len(windows) {
			windows = append(windows, Input{})
		}
		windows[window].add(t, source, word, typ)
	})
	return windows, err
}
