package decode

import (
	"cmp"
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/layers"
)

// A Seq2SeqConfig describes a Seq2Seq.
type Seq2SeqConfig struct {
	Sources int // how many sources are read at a time; 1 if 0
	Width   int // how many sequences are written for each source, such as a beam's Width; 1 if 0

	// SourceLen is how long a source can be, S, and Capacity how many tokens each target can have. If the model's
	// positions have a limit, as learned ones do, 0 means that limit, and a higher number is lowered to it.
	SourceLen, Capacity int

	// SourceMask is the mask that the model's Forward was given in training, without its KeyLengths: each source has a
	// length of its own. Mask limits the attention of targets to themselves; in training there is no such mask. Neither
	// can hold nodes or have an Offset.
	SourceMask, Mask layers.Mask

	Cores int // the most processors that an op's work is spread over, as layers.Build has it; all if 0
}

// A Seq2Seq is a Session whose sequences are the targets of a layers.EncoderDecoder. The sequences from p·Width to
// p·Width+Width−1 are written for source p: Beam numbers those of prompt p in the same way.
//
// Read encodes the sources, each once, before the first step. A sequence that Reorder makes a copy of another one has
// that one's source too. Reset and Forget leave the sources as they are. Make one with
// NewSeq2Seq.
type Seq2Seq struct {
	Session
	width, length int
	sourceVocab   int

	sources []int // ids of the sources, (P, S), padded
	lengths []int // of the sources, (P)
	encoder *graph

	memory  *tensor.Dense // the encoder's output for every sequence, (B, S, D)
	served  []int         // the length of each sequence's source, (B)
	keeper  *graph        // makes the keys and values of the memory, and keeps them in the cache
	hasRead bool
}

// NewSeq2Seq makes a Seq2Seq that has read no source. It is an error if a number is negative, or a length 0 for a model
// whose positions have no limit; if the machine hasn't the memory; if the model doesn't predict its own tokens; or if
// it can't be applied under the masks.
//
// Close the Seq2Seq to free its graphs.
func NewSeq2Seq(m *layers.EncoderDecoder, c Seq2SeqConfig) (*Seq2Seq, error) {
	if m.Encoder.Embedding == nil || m.Decoder.Embedding == nil {
		return nil, errors.New("decode: the source and the target must be of tokens, but one has no vocabulary: make the encoder-decoder with a Vocab")
	}
	if c.Sources < 0 || c.Width < 0 {
		return nil, fmt.Errorf("decode: Sources and Width must be at least 1, or 0 for 1, got %d and %d", c.Sources, c.Width)
	}
	if err := errors.Join(checkMask("SourceMask", c.SourceMask), checkMask("Mask", c.Mask)); err != nil {
		return nil, err
	}
	if c.SourceMask.Causal {
		return nil, errors.New("decode: SourceMask can't be Causal, as targets see the whole source")
	}
	length, err := longest("SourceLen", c.SourceLen, m.Encoder.Positions)
	if err != nil {
		return nil, err
	}
	capacity, err := longest("Capacity", c.Capacity, m.Decoder.Positions)
	if err != nil {
		return nil, err
	}
	sources, width := cmp.Or(c.Sources, 1), cmp.Or(c.Width, 1)
	batch, dim := memory.Product(sources, width), m.Encoder.Embedding.Weight.Value.Shape()[1]
	if err := memory.Check(memory.Product(sources, length, 8), memory.Product(batch, length, dim, 8)); err != nil {
		return nil, fmt.Errorf("decode: %d sources of %d tokens, for %d sequences each: %w", sources, length, width, err)
	}
	s := &Seq2Seq{
		width: width, length: length, sourceVocab: m.Encoder.Embedding.Weight.Value.Shape()[0],
		sources: make([]int, sources*length), lengths: make([]int, sources), served: make([]int, batch),
	}
	next := func(b *layers.Build, tokens, memory *G.Node) (*G.Node, error) {
		mask := c.SourceMask
		mask.KeyLengths = intInput(tokens.Graph(), "lengths", s.served, len(s.served))
		return m.Next(b, tokens, memory, c.Mask, mask)
	}
	session, err := newSession(m.Decoder, batch, capacity, c.Cores, func(b *layers.Build, tokens *G.Node) (*G.Node, error) {
		return next(b, tokens, nil)
	})
	if err != nil {
		return nil, err
	}
	s.Session = *session
	if err := s.open(m, c.SourceMask, next); err != nil {
		s.Close()
		return nil, fmt.Errorf("decode: %w", err)
	}
	return s, nil
}

// open builds the graphs that the Seq2Seq has until it is closed.
func (s *Seq2Seq) open(m *layers.EncoderDecoder, mask layers.Mask, next func(b *layers.Build, tokens, memory *G.Node) (*G.Node, error)) error {
	g := G.NewGraph()
	mask.KeyLengths = intInput(g, "lengths", s.lengths, len(s.lengths))
	encoded, err := m.Encode(&layers.Build{Buffers: s.buffers, Cores: s.cores}, intInput(g, "sources", s.sources, len(s.lengths), s.length), mask) // (P, S, D)
	if err != nil {
		return err
	}
	s.encoder = &graph{}
	if err := s.encoder.compile(encoded); err != nil {
		return err
	}
	s.memory = tensor.New(tensor.Of(encoded.Dtype()), tensor.WithShape(s.Batch(), s.length, encoded.Shape()[2]))
	s.keeper, err = s.newGraph(1, func(b *layers.Build, tokens *G.Node) (*G.Node, error) {
		memory := G.NewTensor(tokens.Graph(), s.memory.Dtype(), 3, G.WithShape(s.memory.Shape()...), G.WithName("memory"), G.WithValue(s.memory))
		return next(b, tokens, memory)
	})
	if err != nil {
		return err
	}
	// This comes after the keeper, which makes the cache's memory for the sources.
	return s.Session.open()
}

// Read encodes sources, of any lengths up to SourceLen, and makes the target of each empty. A source may be empty. If
// there are fewer sources than Sources, the others are empty. A source that is too long, or that has an unknown token,
// is an error, after which everything is as it was before.
func (s *Seq2Seq) Read(sources [][]int) error {
	if s.single == nil {
		return fmt.Errorf("decode: %w", errClosed)
	}
	if len(sources) > len(s.lengths) {
		return fmt.Errorf("decode: there must be at most %d sources, got %d", len(s.lengths), len(sources))
	}
	for p, source := range sources {
		if len(source) > s.length {
			return fmt.Errorf("decode: source %d must have at most %d tokens, got %d", p, s.length, len(source))
		}
		if err := checkTokens(source, s.sourceVocab); err != nil {
			return fmt.Errorf("decode: source %d: %w", p, err)
		}
	}
	clear(s.sources) // padding may be any token
	clear(s.lengths)
	for p, source := range sources {
		s.lengths[p] = copy(s.sources[p*s.length:][:s.length], source)
	}
	s.hasRead = false
	if err := s.keep(); err != nil {
		return fmt.Errorf("decode: reading the sources: %w", err)
	}
	s.hasRead = true
	return nil
}

// keep encodes the sources and keeps the keys and values that the decoder makes of them, for every sequence.
func (s *Seq2Seq) keep() error {
	if err := s.encoder.run(func(encoded G.Value) error { return repeat(s.memory, encoded, s.width) }); err != nil {
		return err
	}
	for i := range s.served {
		s.served[i] = s.lengths[i/s.width]
	}
	// The keeper computes the logits of a token as well. As that token isn't committed, the keys and values of the
	// memory are all that stays.
	s.Reset()
	clear(s.counts)
	s.counts[0] = 1
	if err := s.cache.Extend(s.counts...); err != nil {
		return err
	}
	defer s.cache.Cancel()
	return s.keeper.run(func(G.Value) error { return nil })
}

// repeat sets to, of shape (B, S, D), to the batch elements of a value of shape (P, S, D), each repeated so many times.
func repeat(to *tensor.Dense, from G.Value, times int) error {
	switch from := from.Data().(type) {
	case []float64:
		repeatBlocks(to.Float64s(), from, to.Shape()[1]*to.Shape()[2], times)
	case []float32:
		repeatBlocks(to.Float32s(), from, to.Shape()[1]*to.Shape()[2], times)
	default:
		return fmt.Errorf("the encoder's output must be float32 or float64, got %T", from)
	}
	return nil
}

func repeatBlocks[F float32 | float64](to, from []F, size, times int) {
	for i := range len(to) / size {
		copy(to[i*size:], from[i/times*size:][:size])
	}
}

// Step is the Session's Step. Before Read it is an error.
func (s *Seq2Seq) Step(tokens [][]int) ([][]float64, error) {
	if s.single != nil && !s.hasRead {
		return nil, errors.New("decode: no sources have been read: call Read first")
	}
	return s.Session.Step(tokens)
}

// Reorder makes sequence i a copy of what sequence parents[i] was, its source included.
func (s *Seq2Seq) Reorder(parents []int) error {
	if err := s.Session.Reorder(parents); err != nil {
		return err
	}
	served := append([]int(nil), s.served...)
	for i, parent := range parents {
		s.served[i] = served[parent]
	}
	return nil
}

// Close frees the graphs. Steps and Read are errors from then on. It may be called again, and always returns nil.
func (s *Seq2Seq) Close() error {
	for _, g := range []*graph{s.encoder, s.keeper} {
		if g != nil {
			g.close()
		}
	}
	s.encoder, s.keeper = nil, nil
	return s.Session.Close()
}
