package decode

import (
	"cmp"
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/layers"
)

// A Config describes a Session. To decode with int8 weights, call the method Quantize of the model's layers.Params
// before New.
type Config struct {
	Batch int // number of sequences, B; 1 if 0

	// Capacity is the largest number of tokens in a sequence. If the model's positions have a limit, like learned
	// positions, 0 means this limit, and a higher Capacity is lowered to this limit.
	Capacity int

	// Vocab is the number of tokens, with ids from 0 to Vocab−1, if the model has more outputs than its tokenizer has
	// tokens. The Session leaves out the other logits, so that their ids can't be chosen. 0 means all outputs.
	Vocab int

	// Mask is the mask used with the model in training, such as a Window. It can't contain nodes, because nodes belong
	// to one graph, and it can't have an Offset.
	Mask layers.Mask

	Cores int // the largest number of processors that one op uses; 0 means GOMAXPROCS

	Adapter *layers.Adapter // for the model's parameters; nil for none
}

// A Session is a Model that runs a layers.Decoder. It keeps the keys and values of earlier tokens, so that a step
// computes keys and values only for the new tokens.
//
// A Session has its own graphs and only reads the model's weights. Several sessions may run the same model at the same
// time, each in its own goroutine, but not while a solver or another function changes the weights. If the weights
// change, call Reset, because the Session's keys and values were computed with the old weights. If they don't change,
// layers.Params.KeepPanels may make reading prompts faster. Make one with New.
type Session struct {
	cache    *layers.Cache
	capacity int             // capacity of the cache
	buffers  *layers.Buffers // shared by all graphs, which run in turn
	cores    int
	outputs  int // number of the model's outputs
	vocab    int // number of logits that Step returns, at most outputs
	forward  forward

	sizes  []int    // numbers of tokens per sequence that the graphs read
	graphs []*graph // one for each size, nil until it is needed; empty once the session is closed

	counts []int // number of tokens for each sequence in a run
	values []float64
	logits [][]float64 // the result of Step: rows of values
}

// chunks are the numbers of tokens per sequence that graphs read, unless the capacity is smaller. So prompts of all
// lengths share a few graphs. More than 256 tokens at once aren't read faster per token.
var chunks = []int{1, 16, 32, 64, 128, 256}

// chunk returns the index in sizes of the next chunk if the longest row has that many tokens left. A run takes as long
// as the memory takes to deliver all weights, even for one token. So up to 64 tokens are padded to the next size. More
// tokens are padded only if they fill three quarters of it.
func (s *Session) chunk(left int) int {
	for i, size := range s.sizes {
		if left > size {
			continue
		}
		if size > 64 && 4*left < 3*size {
			return i - 1
		}
		return i
	}
	return len(s.sizes) - 1
}

var errClosed = errors.New("the session is closed: make a new session")

// New makes a Session with empty sequences. It returns an error if
//   - Capacity is negative, or 0 and the model's positions have no limit,
//   - Vocab is negative or above the model's number of outputs,
//   - the machine has too little memory,
//   - the model's number of outputs differs from its number of tokens, or
//   - the model can't be built with the Mask.
//
// Close the Session to free its graphs.
func New(d *layers.Decoder, c Config) (*Session, error) {
	if d.Embedding == nil {
		return nil, errors.New("decode: the decoder has no vocabulary and can't generate tokens: make it with a Vocab")
	}
	if len(d.Blocks) > 0 && d.Blocks[0].Cross != nil {
		return nil, errors.New("decode: the decoder attends to an encoder's output: call NewSeq2Seq with its EncoderDecoder")
	}
	if err := checkMask("Mask", c.Mask); err != nil {
		return nil, err
	}
	capacity, err := longest("Capacity", c.Capacity, d.Positions)
	if err != nil {
		return nil, err
	}
	s, err := newSession(d, cmp.Or(c.Batch, 1), capacity, c.Vocab, c.Cores, func(b *layers.Build, tokens *G.Node) (*G.Node, error) {
		b.Adapter = c.Adapter
		return d.Next(b, tokens, c.Mask)
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.graph(0); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return s, nil
}

// newSession makes a Session without graphs.
func newSession(d *layers.Decoder, batch, capacity, vocab, cores int, forward forward) (*Session, error) {
	cache, err := layers.NewCache(batch, capacity)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	outputs := d.Embedding.Weight.Value.Shape()[0]
	if vocab < 0 || vocab > outputs {
		return nil, fmt.Errorf("decode: Vocab must be from 1 to the model's %d outputs, or 0 for all of them, got %d", outputs, vocab)
	}
	vocab = cmp.Or(vocab, outputs)
	if err := memory.Check(memory.Product(batch, vocab, 8)); err != nil {
		return nil, fmt.Errorf("decode: logits for %d sequences and %d tokens: %w", batch, vocab, err)
	}
	var sizes []int
	for _, n := range chunks {
		if sizes = append(sizes, min(n, capacity)); n >= capacity {
			break
		}
	}
	return &Session{
		cache: cache, capacity: capacity, buffers: &layers.Buffers{}, cores: cores, outputs: outputs, vocab: vocab, forward: forward,
		sizes: sizes, graphs: make([]*graph, len(sizes)),
		counts: make([]int, batch), values: make([]float64, batch*vocab), logits: make([][]float64, batch),
	}, nil
}

// longest returns the largest number of tokens in a sequence: the configured number, but at most the limit of the
// positions. The argument asked is the configured number; 0 means the limit.
func longest(option string, asked int, positions layers.Positions) (int, error) {
	maxLen := positions.MaxLen() // 0 for no limit
	switch {
	case asked < 1 && maxLen == 0:
		return 0, fmt.Errorf("decode: %s must be at least 1, because the model's positions have no limit, got %d", option, asked)
	case asked < 0:
		return 0, fmt.Errorf("decode: %s must be at least 0, got %d", option, asked)
	case asked == 0 || maxLen == 0:
		return max(asked, maxLen), nil
	}
	return min(asked, maxLen), nil
}

// checkMask returns an error if a mask can't be used in several graphs.
func checkMask(option string, m layers.Mask) error {
	if m.Offsets != nil || m.KeyLengths != nil || m.Documents != nil || m.Allow != nil || m.Bias != nil {
		return fmt.Errorf("decode: %s can't contain nodes, because they belong to one graph: leave Offsets, KeyLengths, Documents, Allow and Bias nil", option)
	}
	if m.Offset != 0 {
		return fmt.Errorf("decode: %s can't have an Offset, because the session sets the positions, got %d", option, m.Offset)
	}
	return nil
}

// Batch returns the number of sequences, B.
func (s *Session) Batch() int { return len(s.counts) }

// Vocab returns the number of different tokens, V.
func (s *Session) Vocab() int { return s.vocab }

// Room returns the number of tokens that still fit in a sequence, or 0 if there is no such sequence.
func (s *Session) Room(sequence int) int {
	if sequence < 0 || sequence >= s.Batch() {
		return 0
	}
	return s.capacity - s.cache.Lengths()[sequence]
}

// Step appends tokens to the sequences and returns the logits of the next tokens; see Model. Long rows are read in
// chunks of a few fixed sizes. Step builds a graph for each size when it first needs it, and keeps it. Padding and the
// division into chunks don't change the logits, except for rounding. If a logit is NaN or +Inf, the error wraps
// ErrNotFinite.
func (s *Session) Step(tokens [][]int) (logits [][]float64, err error) {
	defer prefix(&err)
	if len(s.graphs) == 0 {
		return nil, errClosed
	}
	left, err := s.check(tokens)
	if err != nil {
		return nil, err
	}
	clear(s.logits)
	before := s.cache.Lengths()
	for read := 0; left > 0; {
		i := s.chunk(left)
		if err := s.read(i, tokens, read); err != nil {
			s.cache.Cancel()
			return nil, errors.Join(err, s.cache.Truncate(before...))
		}
		read += s.sizes[i]
		left -= s.sizes[i]
	}
	return s.logits, nil
}

// read runs graph i for the tokens of each row from index from on. It stores the logits of the rows that end there.
func (s *Session) read(i int, tokens [][]int, from int) error {
	g, err := s.graph(i)
	if err != nil {
		return err
	}
	for b, row := range tokens {
		chunk := row[min(from, len(row)):min(from+g.tokens, len(row))]
		s.counts[b] = len(chunk)
		padded := g.ids[b*g.tokens:][:g.tokens]
		clear(padded[copy(padded, chunk):])
	}
	if err := s.cache.Extend(s.counts...); err != nil {
		return err
	}
	if err := g.run(func(v G.Value) error { return s.keep(v, tokens, from) }); err != nil {
		return err
	}
	s.cache.Commit()
	return nil
}

// keep copies the logits of the rows whose last token was in this run. The argument out has shape (B, outputs).
func (s *Session) keep(out G.Value, tokens [][]int, from int) error {
	for b, n := range s.counts {
		if n == 0 || from+n < len(tokens[b]) {
			continue
		}
		row := s.values[b*s.vocab:][:s.vocab:s.vocab]
		if err := toFloat64(row, out, b*s.outputs); err != nil {
			return err
		}
		if _, err := highest(row); err != nil {
			return err
		}
		s.logits[b] = row
	}
	return nil
}

// check checks the tokens of a step and returns the length of the longest row.
func (s *Session) check(tokens [][]int) (longest int, err error) {
	if len(tokens) != s.Batch() {
		return 0, fmt.Errorf("%d sequences need one row of tokens each, got %d rows", s.Batch(), len(tokens))
	}
	for i, row := range tokens {
		if room := s.Room(i); len(row) > room {
			return 0, noRoom(i, room, len(row))
		}
		if err := checkTokens(row, s.vocab); err != nil {
			return 0, fmt.Errorf("sequence %d: %w", i, err)
		}
		longest = max(longest, len(row))
	}
	return longest, nil
}

// graph returns graph i, which reads up to sizes[i] tokens per sequence.
func (s *Session) graph(i int) (*graph, error) {
	if s.graphs[i] == nil {
		g, err := s.newGraph(s.sizes[i], s.forward)
		if err != nil {
			return nil, err
		}
		s.graphs[i] = g
	}
	return s.graphs[i], nil
}

// Reorder replaces every sequence i by a copy of the old sequence parents[i]; see Model.
func (s *Session) Reorder(parents []int) (err error) {
	defer prefix(&err)
	return s.cache.Reorder(parents...)
}

// Forget empties a sequence. It returns an error if there is no such sequence.
func (s *Session) Forget(sequence int) (err error) {
	defer prefix(&err)
	if sequence < 0 || sequence >= s.Batch() {
		return fmt.Errorf("the sequence to forget must be from 0 to %d, got %d", s.Batch()-1, sequence)
	}
	lengths := s.cache.Lengths()
	lengths[sequence] = 0
	return s.cache.Truncate(lengths...)
}

// Reset empties all sequences.
func (s *Session) Reset() { s.cache.Reset() }

// Close frees the session's graphs. After Close, Step returns an error. You may call Close more than once; it always
// returns nil.
func (s *Session) Close() error {
	for _, g := range s.graphs {
		if g != nil {
			g.close()
		}
	}
	s.graphs, s.buffers = nil, nil
	return nil
}
