package decode_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// forgetter is a Model with the optional method Forget.
type forgetter interface {
	decode.Model
	Forget(sequence int) error
}

// huge is a number of tokens that no memory holds, and that overflows an int if it is multiplied.
const huge = math.MaxInt/2 + 1

// sameSteps performs the same actions on two models: steps with rows of different lengths, Reorder and Forget. It
// compares the logits and the room of every sequence.
func sameSteps(t *testing.T, got, want forgetter, tol float64) {
	t.Helper()
	for n, action := range []any{
		[][]int{{1, 2, 3, 4, 5}, {6}, {0, 3, 1}}, // prompts
		[][]int{{6}, {5}, {4}},
		[][]int{{0}, {}, {2}}, // sequence 1 has ended
		[][]int{nil, nil, nil},
		[]int{2, 0, 2}, // parents for Reorder
		[][]int{{1}, {1}, {5}},
		[][]int{{}, {2, 4}, {1}},
		1, // sequence for Forget
		[][]int{{}, {3, 3, 2, 1, 0, 6, 5, 4}, {2, 2}},
		[][]int{{4}, {4}, {0}},
	} {
		switch action := action.(type) {
		case [][]int:
			g, w := must.Get(got.Step(action))(t), must.Get(want.Step(action))(t)
			wantLogits(t, fmt.Sprintf("step %d", n), g, w, tol)
		case []int:
			for _, m := range []decode.Model{got, want} {
				must.Do(t, m.Reorder(action))
			}
		case int:
			for _, m := range []forgetter{got, want} {
				must.Do(t, m.Forget(action))
			}
		}
		for i := range want.Batch() {
			if got.Room(i) != want.Room(i) {
				t.Fatalf("after action %d, sequence %d has room for %d, want %d", n, i, got.Room(i), want.Room(i))
			}
		}
	}
}

func TestSessionIsTheFullPass(t *testing.T) {
	eachDecoder(t, bothDtypes, func(t *testing.T, d *layers.Decoder, mask layers.Mask, tol float64) {
		s := newSession(t, d, decode.Config{Batch: 3, Capacity: sessionCapacity, Mask: mask})
		if s.Batch() != 3 || s.Vocab() != sessionVocab {
			t.Errorf("got a Batch of %d and a Vocab of %d, want 3 and %d", s.Batch(), s.Vocab(), sessionVocab)
		}
		full := wholeDecoder(t, d, mask)
		sameSteps(t, s, cacheless(3, full), tol)
		s.Reset()
		sameSteps(t, s, cacheless(3, full), tol)
	})
}

// TestSessionWithAdapter checks that a session with an adapter gives the logits of the merged model.
func TestSessionWithAdapter(t *testing.T) {
	model := func() (*layers.Decoder, *layers.Params) {
		p := must.Get(layers.NewParams(tensor.Float64, 5))(t)
		return must.Get(layers.NewDecoder(p, sessionConfigs()["grouped heads"]))(t), p
	}
	d, p := model()
	merged, q := model()
	a := must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 2, Dropout: 0.5}, 1))(t)
	for i, x := range a.Params.All() {
		must.Do(t, x.Value.Memset(0.1*float64(i%3)+0.1))
	}
	must.Do(t, a.Merge(q))
	s := newSession(t, d, decode.Config{Batch: 3, Capacity: sessionCapacity, Adapter: a})
	sameSteps(t, s, cacheless(3, wholeDecoder(t, merged, layers.Mask{})), 1e-12)
}

// TestSearchesOverSessions checks that greedy, random and beam searches return the same results as without a cache.
func TestSearchesOverSessions(t *testing.T) {
	testseed.Slow(t)
	eachDecoder(t, bothDtypes[1:], func(t *testing.T, d *layers.Decoder, mask layers.Mask, tol float64) {
		prompts, full := [][]int{{1, 2, 3}, {4}}, wholeDecoder(t, d, mask)
		for _, o := range []decode.Options{
			{MaxTokens: 8, End: []int{0}},
			{MaxTokens: 20, Sampler: decode.Sampler{Temperature: 1.1, TopP: 0.95}, Seed: 4},
			{MaxTokens: 20, Sampler: decode.Sampler{Temperature: 1}, Keep: 6},
		} {
			s := newSession(t, d, decode.Config{Batch: 2, Capacity: sessionCapacity, Mask: mask})
			got := generate(t, s, prompts, o)
			want := generate(t, cacheless(2, full), prompts, o)
			for i, w := range want {
				if !slices.Equal(got[i].Tokens, w.Tokens) || math.Abs(got[i].LogProb-w.LogProb) > 100*tol || got[i].Stop != w.Stop {
					t.Errorf("sequence %d: got %+v, want %+v", i, got[i], w)
				}
			}
		}
		o := decode.BeamOptions{Width: 3, MaxTokens: 7, End: []int{2}, LengthPenalty: 0.7}
		s := newSession(t, d, decode.Config{Batch: 6, Capacity: sessionCapacity, Mask: mask})
		got := beam(t, s, prompts, o)
		for i, want := range beam(t, cacheless(6, full), prompts, o) {
			wantHypotheses(t, got[i], want, 100*tol)
		}
	})
}

func TestSessionCapacity(t *testing.T) {
	configs := sessionConfigs()
	for _, tc := range []struct {
		config string
		asked  int
		want   int
	}{
		{"learned", 0, sessionCapacity},
		{"learned", 5, 5},
		{"learned", 1000, sessionCapacity},
		{"rotary", 1000, 1000},
	} {
		s := newSession(t, newDecoder(t, tensor.Float64, configs[tc.config]), decode.Config{Capacity: tc.asked})
		if s.Batch() != 1 || s.Room(0) != tc.want {
			t.Errorf("%s, %d: got a Batch of %d and room for %d, want 1 and %d", tc.config, tc.asked, s.Batch(), s.Room(0), tc.want)
		}
		if s.Room(-1) != 0 || s.Room(1) != 0 {
			t.Errorf("sequences that don't exist have room for %d and %d, want 0", s.Room(-1), s.Room(1))
		}
	}

	s := newSession(t, newDecoder(t, tensor.Float64, configs["learned"]), decode.Config{})
	if _, err := s.Step([][]int{make([]int, sessionCapacity)}); err != nil || s.Room(0) != 0 {
		t.Fatalf("after a prompt as long as the capacity: got room for %d and error %v, want room for 0", s.Room(0), err)
	}
	must.Refuse(s.Step([][]int{{1}}))(t, "decode: ", "sequence 0 has room for 0 more tokens, got 1")
	s.Reset()
	if s.Room(0) != sessionCapacity {
		t.Errorf("after Reset: got room for %d, want %d", s.Room(0), sessionCapacity)
	}
}

func TestSessionErrors(t *testing.T) {
	configs := sessionConfigs()
	learned, rotary := newDecoder(t, tensor.Float64, configs["learned"]), newDecoder(t, tensor.Float64, configs["rotary"])
	labels, series := configs["learned"], configs["rotary"]
	labels.Outputs, series.Vocab, series.Outputs = 3, 0, sessionVocab
	g := G.NewGraph()
	lengths := G.NewTensor(g, tensor.Int, 1, G.WithShape(1), G.WithName("lengths"))
	for _, tc := range []struct {
		name    string
		decoder *layers.Decoder
		config  decode.Config
		want    string
	}{
		{"no capacity", rotary, decode.Config{}, "Capacity must be at least 1, because the model's positions have no limit, got 0"},
		{"negative capacity", learned, decode.Config{Capacity: -1}, "Capacity must be at least 0, got -1"},
		{"negative batch", learned, decode.Config{Batch: -1}, "decode: cache: "},
		{"negative Vocab", learned, decode.Config{Vocab: -1}, "decode: Vocab must be from 1 to the model's 7 outputs, or 0 for all of them, got -1"},
		{"too large a Vocab", learned, decode.Config{Vocab: 8}, "got 8"},
		{"too large a batch", learned, decode.Config{Batch: huge}, fmt.Sprint("decode: cache: ", huge, " sequences of 14 tokens: this takes")},
		{"too large a batch for the logits", rotary, decode.Config{Batch: math.MaxInt, Capacity: 1}, "this takes an impossible number of bytes"},
		{"too large a capacity", rotary, decode.Config{Capacity: huge}, fmt.Sprint("decode: cache: 1 sequences of ", huge, " tokens: this takes")},
		{"too many tokens together", rotary, decode.Config{Batch: huge, Capacity: huge}, "this takes an impossible number of bytes"},
		{"a decoder of embeddings", newDecoder(t, tensor.Float64, series), decode.Config{Capacity: 1}, "decode: the decoder has no vocabulary"},
		{"a mask with nodes", learned, decode.Config{Mask: layers.Mask{KeyLengths: lengths}}, "Mask can't contain nodes"},
		{"an offset", learned, decode.Config{Mask: layers.Mask{Offset: 2}}, "can't have an Offset"},
		{"a wrong window", learned, decode.Config{Mask: layers.Mask{Window: &layers.Window{Left: -2}}}, "Window"},
		{"other outputs", newDecoder(t, tensor.Float64, labels), decode.Config{}, "one output for each of its 7 tokens: logits must have shape (B, V) = (1, 7), got (1, 3)"},
	} {
		s, err := decode.New(tc.decoder, tc.config)
		must.Fail(t, err, "decode: ", tc.want)
		if s != nil {
			t.Errorf("%s: got a session despite the error", tc.name)
		}
	}

	s := newSession(t, learned, decode.Config{Batch: 2})
	must.Get(s.Step([][]int{{1, 2}, {3}}))(t)
	for _, tc := range []struct {
		tokens [][]int
		want   string
	}{
		{[][]int{{1}}, "2 sequences need one row of tokens each, got 1"},
		{[][]int{{1}, {2}, {3}}, "2 sequences need one row of tokens each, got 3"},
		{[][]int{{1}, {2, 7}}, "sequence 1: the token at position 1 must be from 0 to 6, got 7"},
		{[][]int{{-1}, {2}}, "sequence 0: the token at position 0 must be from 0 to 6, got -1"},
		{[][]int{{1}, make([]int, sessionCapacity)}, "sequence 1 has room for 13 more tokens, got 14"},
	} {
		must.Refuse(s.Step(tc.tokens))(t, "decode: ", tc.want)
	}
	must.Fail(t, s.Reorder([]int{0}), "decode: cache: 2 sequences need one parent each, got 1")
	must.Fail(t, s.Reorder([]int{0, 2}), "decode: ", "got 2")
	must.Fail(t, s.Forget(2), "decode: the sequence to forget must be from 0 to 1, got 2")
	must.Fail(t, s.Forget(-1), "decode: ", "got -1")
	if s.Room(0) != sessionCapacity-2 || s.Room(1) != sessionCapacity-1 {
		t.Errorf("after errors: got room for %d and %d, want %d and %d", s.Room(0), s.Room(1), sessionCapacity-2, sessionCapacity-1)
	}
	full := cacheless(2, wholeDecoder(t, learned, layers.Mask{}))
	full.sequences = [][]int{{1, 2}, {3}}
	next := [][]int{{4}, {5, 6}}
	wantLogits(t, "after errors", must.Get(s.Step(next))(t), must.Get(full.Step(next))(t), 1e-10)
}

// TestSessionStepFails checks that a failed step doesn't change the session. Later steps can use the same graphs.
func TestSessionStepFails(t *testing.T) {
	const capacity = 100
	d := newDecoder(t, tensor.Float64, sessionConfigs()["alibi"])
	s := newSession(t, d, decode.Config{Batch: 2, Capacity: capacity})
	full := newFake(2, sessionVocab)
	full.logits = whole(t, capacity, func(tokens *G.Node) (*G.Node, error) { return d.Forward(&layers.Build{}, tokens, layers.Mask{}) })
	step := func(what string, tokens [][]int) {
		t.Helper()
		wantLogits(t, what, must.Get(s.Step(tokens))(t), must.Get(full.Step(tokens))(t), 1e-10)
	}
	step("before", [][]int{{1}, {3}})

	// New graphs get an embedding table without the last tokens.
	table := d.Embedding
	other := func(vocab, dim int) *layers.Embedding {
		return must.Get(layers.NewEmbedding(must.Get(layers.NewParams(tensor.Float64, 1))(t), vocab, dim, layers.Init{}))(t)
	}
	d.Embedding = other(4, 8)
	copy(d.Embedding.Weight.Value.Float64s(), table.Weight.Value.Float64s())
	long := make([]int, 70)
	for _, wrong := range [][][]int{{{1, 2, 3, 1}, {6, 0}}, {append(long, 5), {2, 0}}} { // in the second, the first chunk succeeds
		if _, err := s.Step(wrong); err == nil || !strings.HasPrefix(err.Error(), "decode: embedding(4, 8)") {
			t.Fatalf("a step with an unknown token: got the error %v, want the embedding's", err)
		}
		if s.Room(0) != capacity-1 || s.Room(1) != capacity-1 {
			t.Errorf("after a failed step: got room for %d and %d, want %d", s.Room(0), s.Room(1), capacity-1)
		}
	}
	d.Embedding = other(7, 4)
	if _, err := s.Step([][]int{make([]int, 20), nil}); err == nil {
		t.Error("a step with embeddings of another width returned no error")
	}
	d.Embedding = table
	step("with the graphs of failed runs", [][]int{{3, 1, 0, 2}, {2, 0}})
	step("after a graph that couldn't be built", [][]int{long[:20], {6}})
}

func TestSessionClose(t *testing.T) {
	s := newSession(t, newDecoder(t, tensor.Float64, sessionConfigs()["learned"]), decode.Config{})
	must.Get(s.Step([][]int{{1, 2}}))(t)
	for range 2 {
		must.Do(t, s.Close())
	}
	must.Refuse(s.Step([][]int{{1}}))(t, "decode: ", "the session is closed")
	s.Reset()
	if s.Room(0) != sessionCapacity || s.Reorder([]int{0}) != nil || s.Forget(0) != nil {
		t.Error("Room, Reorder and Forget must still work on a closed session")
	}
}

// TestChunks gives a session prompts of many lengths. The logits are those of the full pass, whatever the other
// prompts of the batch. The few graphs are built only once. The padding doesn't matter: it has the id 0, whose
// embedding is NaN.
func TestChunks(t *testing.T) {
	const capacity = 300
	for _, name := range usual([]string{"alibi", "learned", "grouped heads", "rotary"}) {
		config := sessionConfigs()[name]
		t.Run(name, func(t *testing.T) {
			if learned, ok := config.Positions.(layers.Learned); ok {
				learned.MaxLen = capacity
				config.Positions = learned
			}
			d := newDecoder(t, tensor.Float64, config)
			for i := range config.Dim {
				d.Embedding.Weight.Value.Float64s()[i] = math.NaN()
			}
			mask := layers.Mask{Window: &layers.Window{Left: 70, Right: -1}}
			prompt := make([]int, capacity)
			for i := range prompt {
				prompt[i] = 1 + i*i%6
			}
			full := whole(t, capacity, func(tokens *G.Node) (*G.Node, error) { return d.Forward(&layers.Build{}, tokens, mask) })
			s := newSession(t, d, decode.Config{Batch: 3, Capacity: capacity, Mask: mask})
			for _, lengths := range [][]int{{2, 0, 16}, {17, 1, 0}, {33, 65, 40}, {90, 16, 5}, {0, 127, 129}, {200, 193, 130}, {1, 257, capacity}} {
				rows, want := make([][]int, 3), make([][]float64, 3)
				for i, n := range lengths {
					if rows[i] = prompt[i*(n%2):][:n]; n > 0 {
						want[i] = full(rows[i])
					}
				}
				s.Reset()
				wantLogits(t, fmt.Sprint(lengths), must.Get(s.Step(rows))(t), want, 1e-9)
			}
		})
	}
}

// TestSessionBits checks that the number of cores doesn't change the bits of the logits. The model is so large that its
// ops are divided among cores.
func TestSessionBits(t *testing.T) {
	d := newDecoder(t, tensor.Float32, layers.ModelConfig{Vocab: 3001, Dim: 192, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 6}}, Layers: 1, Positions: layers.Rotary{}})
	prompt := make([]int, 150)
	for i := range prompt {
		prompt[i] = i * i % 3001
	}
	var want string
	for _, cores := range []int{1, 2, 3, 8} {
		s := newSession(t, d, decode.Config{Capacity: 200, Cores: cores})
		got := fmt.Sprint(must.Get(s.Step([][]int{prompt}))(t))
		got += fmt.Sprint(must.Get(s.Step([][]int{{5}}))(t))
		if want == "" {
			want = got
		} else if got != want {
			t.Errorf("%d cores change the logits", cores)
		}
	}
}

// TestSessionVocab checks that the logits of a session leave out ids that aren't tokens.
func TestSessionVocab(t *testing.T) {
	d := newDecoder(t, tensor.Float32, sessionConfigs()["rotary"])
	every := newSession(t, d, decode.Config{Batch: 2, Capacity: 5})
	some := newSession(t, d, decode.Config{Batch: 2, Capacity: 5, Vocab: 4})
	want := must.Get(every.Step([][]int{{1, 2}, {3}}))(t)
	got := must.Get(some.Step([][]int{{1, 2}, {3}}))(t)
	if some.Vocab() != 4 || !slices.Equal(got[0], want[0][:4]) || !slices.Equal(got[1], want[1][:4]) {
		t.Errorf("a Vocab of %d: got %v, want the first 4 logits of %v", some.Vocab(), got, want)
	}
	must.Refuse(some.Step([][]int{{4}, nil}))(t, "decode: ", "the token at position 0 must be from 0 to 3, got 4")
}

// TestSessionsInParallel runs several sessions of one model at the same time. Run this test with -race.
func TestSessionsInParallel(t *testing.T) {
	d := newDecoder(t, tensor.Float32, sessionConfigs()["learned"])
	o := decode.Options{MaxTokens: 40, Sampler: decode.Sampler{Temperature: 1}, Keep: 7}
	var group sync.WaitGroup
	results := make([][]decode.Result, 4)
	for i := range results {
		group.Go(func() {
			s, err := decode.New(d, decode.Config{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if results[i], err = decode.Generate(t.Context(), s, [][]int{{1, 2, 3 + i%2}}, o); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	for i := range 2 {
		if !slices.Equal(results[i][0].Tokens, results[i+2][0].Tokens) {
			t.Errorf("two sessions generated %v and %v, want the same tokens", results[i][0].Tokens, results[i+2][0].Tokens)
		}
	}
}

// coresSeen are Positions that record the Cores of every graph.
type coresSeen struct {
	layers.NoPositions
	seen *[]int
}

func (c coresSeen) New(*layers.Params, int, layers.AttentionConfig) (layers.Positions, error) {
	return c, nil
}

func (c coresSeen) Embed(b *layers.Build, x, _ *G.Node) (*G.Node, error) {
	*c.seen = append(*c.seen, b.Cores)
	return x, nil
}

// TestCores checks that every graph gets the Cores of the session's configuration, and that prompts of all lengths need
// only a few graphs.
func TestCores(t *testing.T) {
	var seen []int
	c := layers.ModelConfig{Vocab: sessionVocab, Dim: 8, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}, Layers: 1, Positions: coresSeen{seen: &seen}}
	d := newDecoder(t, tensor.Float32, c)
	must.Get(newSession(t, d, decode.Config{Capacity: 5, Cores: 3}).Step([][]int{{1, 2}}))(t)
	newSeq2Seq(t, newEncoderDecoder(t, tensor.Float32, c), decode.Seq2SeqConfig{SourceLen: 3, Capacity: 5, Cores: 3})
	if want := []int{3, 3, 3, 3, 3}; !slices.Equal(seen, want) { // two graphs of the Session and three of the Seq2Seq
		t.Errorf("the graphs have Cores %v, want %v", seen, want)
	}
	s := newSession(t, d, decode.Config{Capacity: 1000})
	seen = nil
	for n := 1; n < 1000; n += 7 {
		must.Get(s.Step([][]int{make([]int, n)}))(t)
		s.Reset()
	}
	if len(seen) > 6 {
		t.Errorf("prompts of many lengths need %d graphs, want at most 6", len(seen))
	}
}
