package decode

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Options say how Generate chooses tokens and when it stops.
type Options struct {
	Sampler Sampler

	// Seed decides every random choice. The random numbers for a sequence depend only on Seed and on the index of its
	// prompt. Runs with the same prompts, batch size and options give the same tokens. With another batch size, or
	// other lengths of the other prompts, the last bits of the logits may differ; this changes roughly one token in
	// many thousands.
	Seed uint64

	// MaxTokens is the largest number of new tokens in a sequence. It must be at least 1.
	MaxTokens int

	// End lists the tokens that end a sequence. They aren't part of the result.
	End []int

	// Keep says what happens when the model has no more room for a sequence. If it is 0, the sequence ends. Otherwise
	// the model, which must have a method Forget like a Session's, forgets the sequence and continues with its last
	// Keep tokens, prompt included, or as many of them as fit. The following tokens depend only on those kept. This
	// happens again each time the room is used up, so choose a Keep well below the room, such as half of it.
	Keep int

	// OnToken, if not nil, is called with each new token as soon as it is chosen. Within a step, calls come in the
	// order of the sequences; sequence i belongs to prompts[i]. If OnToken returns false, the sequence ends with that
	// token.
	OnToken func(sequence, token int) bool
}

// A Stop says why a sequence ended.
type Stop int

// The reasons why a sequence ended. If several apply, Result.Stop is the first of them.
const (
	StopNone      Stop = iota // Generate returned an error before the sequence ended
	StopEnd                   // the next token was one of Options.End
	StopCaller                // Options.OnToken returned false
	StopMaxTokens             // the sequence has Options.MaxTokens new tokens
	StopRoom                  // the model has no more room, and Options.Keep is 0
)

var stopNames = [...]string{"not ended", "end token", "ended by the caller", "MaxTokens reached", "no more room in the model"}

// String returns the reason in words.
func (s Stop) String() string {
	if s < 0 || int(s) >= len(stopNames) {
		return "Stop(" + strconv.Itoa(int(s)) + ")"
	}
	return stopNames[s]
}

// A Result is the continuation of one prompt.
type Result struct {
	Tokens   []int     // without the prompt, and without the end token
	LogProbs []float64 // the natural logarithm of each token's probability
	LogProb  float64   // the sum of LogProbs plus, if Stop is StopEnd, the end token's log probability
	Stop     Stop
}

// Generate continues each of the prompts, which must have at least one token. It appends prompts[i] to the model's
// sequence i, after any tokens already in it. If the model has more sequences than there are prompts, the others don't
// change. When a sequence ends, the others go on without it.
//
// Log probabilities come directly from the model: Temperature, TopK and TopP don't change them.
//
// Generate never appends the last token of a sequence to the model, so a sequence can get one token more than the model
// has room for. Afterwards the model holds each prompt and its new tokens, without the end token; if Stop isn't
// StopEnd, the last new token is missing too. If Options.Keep made the model forget a sequence, it holds only the
// tokens kept and those after them.
//
// Generate checks ctx before every step. If ctx is done, it returns ctx.Err() and the results so far; after an error of
// the model it also returns the results so far. For invalid arguments, such as a prompt that there is no room for, it
// returns an error and no results.
func Generate(ctx context.Context, m Model, prompts [][]int, o Options) ([]Result, error) {
	if err := checkModel(m, prompts, 1, o.MaxTokens, o.End); err != nil {
		return nil, err
	}
	if err := o.Sampler.check(); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if _, ok := m.(forgetter); o.Keep < 0 || o.Keep > 0 && !ok {
		return nil, fmt.Errorf("decode: Keep must be at least 0, and 0 for a model without Forget, got %d for a %T", o.Keep, m)
	}
	g := &generation{Options: o, model: m, prompts: prompts, results: make([]Result, len(prompts))}
	for i := range prompts {
		g.random = append(g.random, rand.New(rand.NewPCG(o.Seed, uint64(i))))
	}
	err := g.run(ctx)
	return g.results, err
}

// generation is the state of one call of Generate.
type generation struct {
	Options
	model   Model
	prompts [][]int
	results []Result
	random  []*rand.Rand // one for each result
}

func (g *generation) run(ctx context.Context) error {
	tokens := make([][]int, g.model.Batch()) // the model's next step; nil for a sequence that has ended
	copy(tokens, g.prompts)
	for live := len(g.prompts); live > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := g.makeRoom(tokens); err != nil {
			return err
		}
		logits, err := step(g.model, tokens)
		if err != nil {
			return err
		}
		for i := range g.results {
			if g.results[i].Stop != StopNone {
				continue
			}
			token, err := g.extend(i, logits[i])
			if err != nil {
				return fmt.Errorf("decode: sequence %d: %w", i, err)
			}
			tokens[i] = []int{token}
			if g.results[i].Stop != StopNone {
				tokens[i] = nil
				live--
			}
		}
	}
	return nil
}

// makeRoom makes the model forget sequences that have no room left, and sets their next tokens to the ones to keep.
func (g *generation) makeRoom(tokens [][]int) error {
	if g.Keep == 0 {
		return nil
	}
	for i, r := range g.results {
		if len(tokens[i]) <= g.model.Room(i) {
			continue
		}
		if err := g.model.(forgetter).Forget(i); err != nil {
			return fmt.Errorf("decode: forgetting sequence %d: %w", i, err)
		}
		keep := min(g.Keep, g.model.Room(i))
		if keep < 1 {
			return fmt.Errorf("decode: sequence %d must have room for at least 1 token after Forget, got %d", i, keep)
		}
		if keep <= len(r.Tokens) {
			tokens[i] = r.Tokens[len(r.Tokens)-keep:]
			continue
		}
		all := slices.Concat(g.prompts[i], r.Tokens)
		tokens[i] = all[max(0, len(all)-keep):]
	}
	return nil
}

// extend chooses the next token of sequence i, and sets Stop if the sequence ends with it.
func (g *generation) extend(i int, logits []float64) (token int, err error) {
	token, logProb, err := g.Sampler.sample(logits, g.random[i])
	if err != nil {
		return 0, err
	}
	r := &g.results[i]
	r.LogProb += logProb
	if slices.Contains(g.End, token) {
		r.Stop = StopEnd
		return token, nil
	}
	r.Tokens = append(r.Tokens, token)
	r.LogProbs = append(r.LogProbs, logProb)
	switch {
	case g.OnToken != nil && !g.OnToken(i, token):
		r.Stop = StopCaller
	case len(r.Tokens) == g.MaxTokens:
		r.Stop = StopMaxTokens
	case g.Keep == 0 && g.model.Room(i) < 1:
		r.Stop = StopRoom
	}
	return token, nil
}
