package decode

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Options say how Generate writes.
type Options struct {
	Sampler Sampler

	// Seed decides every random choice. The random numbers of a sequence depend on Seed and on the place of its prompt
	// among the prompts, and on nothing else. Its logits may differ in their last bits with the size of the batch and
	// with the lengths of the other rows of a step, so that once in many thousands of tokens another one is drawn. Runs
	// with the same prompts, batch and options write the same.
	Seed uint64

	// MaxTokens is how many new tokens a sequence gets at most. It must be at least 1.
	MaxTokens int

	// End are the tokens that end a sequence. They are no part of it.
	End []int

	// Keep says what happens where the model has no more room for a sequence. If it is 0, the sequence ends. Otherwise
	// the model, which must have the method Forget of a Session, forgets the sequence and is given the last Keep tokens
	// of its prompt and of what was written, or as many as there is room for. What is written from there on depends on
	// these alone. This happens again each time that the room is used up, so that Keep is best well below it, such as
	// half of it.
	Keep int

	// OnToken, if it isn't nil, is called with each new token as soon as it is chosen: step by step, and within a step
	// in the order of the sequences, which have the numbers of the prompts. If it returns false, the sequence ends with
	// that token.
	OnToken func(sequence, token int) bool
}

// A Stop says why a sequence ended.
type Stop int

// The reasons why a sequence ended. If several apply, Result.Stop is the first of them.
const (
	StopNone      Stop = iota // it hadn't ended when Generate returned an error
	StopEnd                   // the next token was one of Options.End
	StopCaller                // Options.OnToken returned false
	StopMaxTokens             // it had Options.MaxTokens new tokens
	StopRoom                  // the model has no room to go on, and Options.Keep is 0
)

var stopNames = [...]string{"not ended", "end token", "ended by the caller", "MaxTokens reached", "no more room in the model"}

// String returns the reason in words.
func (s Stop) String() string {
	if s < 0 || int(s) >= len(stopNames) {
		return "Stop(" + strconv.Itoa(int(s)) + ")"
	}
	return stopNames[s]
}

// A Result is what was written after one prompt.
type Result struct {
	Tokens   []int     // without the prompt, and without the end token
	LogProbs []float64 // the log probability of each of Tokens, a natural logarithm
	LogProb  float64   // the sum of LogProbs and, where Stop is StopEnd, the end token's log probability
	Stop     Stop
}

// Generate writes what follows each of the prompts, which have at least one token. It appends prompts[i] to the model's
// sequence i, whatever that holds already. A model may have more sequences than there are prompts: the others stay as
// they are. A sequence that has ended doesn't hold up the others.
//
// Log probabilities are the model's own: before Temperature, TopK and TopP.
//
// The last token of a sequence isn't given to the model, so that a sequence can get one token more than the model has
// room for. Afterwards the model holds each prompt and what was written after it, without the end token or, where Stop
// isn't StopEnd, without the last token. Of a sequence that was forgotten because of Options.Keep, it holds what came
// since.
//
// Generate looks at ctx before every step. If ctx is done, it returns ctx.Err() and what was written until then. It
// does so with any error on the way. Arguments that can't be right are errors without results: a prompt that there is
// no room for, say.
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

// makeRoom has the model forget the sequences that it has no room for, and sets their tokens to those to keep.
func (g *generation) makeRoom(tokens [][]int) error {
	if g.Keep == 0 {
		return nil
	}
	for i, r := range g.results {
		if len(tokens[i]) <= g.model.Room(i) {
			continue
		}
		if err := g.model.(forgetter).Forget(i); err != nil {
			return fmt.Errorf("decode: beginning sequence %d anew: %w", i, err)
		}
		keep := min(g.Keep, g.model.Room(i))
		if keep < 1 {
			return fmt.Errorf("decode: sequence %d must have room once the model forgot it, got %d", i, keep)
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
