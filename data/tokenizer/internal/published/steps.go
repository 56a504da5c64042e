package published

import "github.com/heed-go/heed/data/tokenizer/internal/pipe"

// A normalizer changes a text before it is split.
type normalizer interface {
	Normalize(a pipe.Text) pipe.Text
}

// A splitter splits a text into pieces, which are encoded separately.
type splitter interface {
	split(a pipe.Text, yield func(pipe.Text))
}

// A model turns a piece into tokens.
type model interface {
	// Encode appends the tokens of a piece. Their Start and End count bytes of the piece. It returns an error if the
	// model can't encode a part of the piece and has no unknown token, or if the budget is spent.
	Encode(tokens []pipe.Token, piece string, b *pipe.Budget) ([]pipe.Token, error)

	Vocabulary() []string // spelling of each id; empty if no token has the id
	Unknown() int         // id for unknown text, or -1
}

// A decoder replaces tokens by other tokens. The decoded text is the tokens of the last decoder, one after the other.
type decoder interface {
	// Stream returns functions that take the next token, and the end of a text. They pass the decoded tokens on to
	// next, until the budget is spent.
	Stream(b *pipe.Budget, next pipe.Sink) (pipe.Sink, func())
}
