package decode

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Options controls how Generate chooses tokens and when it stops.
type Options struct {
	Sampler Sampler

	// Seed determines every random choice. The random numbers for a sequence depend only on Seed and on the index of
	// its prompt. Runs with the same prompts, batch size and options give the same tokens. If the batch size or the
	// length of another prompt changes, the last bits of the logits may change too. This affects roughly one token in
	// many thousands.
	Seed uint64

	// MaxTokens is the largest number of new tokens in a sequence. It must be at least 1.
	MaxTokens int

	// End lists the tokens that end a sequence. They aren't part of the result.
	End []int

	Rules // limits which tokens are chosen

	// Keep is the number of tokens to keep when the model has no more room for a sequence. If it is 0, the sequence
	// ends. Otherwise the model, which must have a method Forget like a Session, forgets the sequence and reads its
	// last Keep tokens again, prompt included, or fewer tokens if Keep exceeds the room. Later tokens depend only on
	// the tokens kept. This happens each time the room is used up, so choose a Keep well below the room, such as half
	// of it.
	Keep int

	// OnToken, if not nil, is called with each new token as soon as it is chosen. Within a step, calls come in the
	// order of the sequences; sequence i belongs to prompts[i]. If OnToken returns false, the sequence ends with that
	// token.
	OnToken func(sequence, token int) bool
}

// A Stop says why a sequence ended.
type Stop int

// The reasons why a sequence ended. If several reasons apply, Result.Stop is the first of them in this list.
const (
	_             Stop = iota // Generate returned an error before the sequence ended
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

// Generate continues each of the prompts. Each prompt must have at least one token. Generate appends prompts[i] to the
// model's sequence i, after any tokens already in that sequence. Sequences without a prompt don't change. When one
// sequence ends, Generate continues the others.
//
// Log probabilities come directly from the model, as the log softmax of its logits, and neither the Sampler nor
// the Rules change them. The penalties count the tokens of prompts[i] and of its continuation, also tokens that Keep
// made the model forget, but not tokens that were in the sequence before.
//
// Generate never appends the last token of a sequence to the model, so a sequence can get one token more than the model
// has room for. After Generate, the model holds each prompt and its new tokens, without the end token. If Stop isn't
// StopEnd, the last new token is missing too. If Options.Keep made the model forget a sequence, the model holds only
// the tokens kept and all later tokens of that sequence.
//
// Generate checks ctx before every step. If ctx is done, it returns ctx.Err() and the results so far. After an error of
// the model it also returns the results so far. If an argument is invalid, or the model has no room for a prompt,
// Generate returns only an error.
func Generate(ctx context.Context, m Model, prompts [][]int, o Options) ([]Result, error) {
	if err := checkModel(m, prompts, 1, o.MaxTokens, o.End); err != nil {
		return nil, err
	}
	if err := o.Sampler.Check(); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if err := o.Rules.check(m.Vocab()); err != nil {
		return nil, err
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
	random  []*rand.Rand // one for each sequence

	changed []float64 // the logits of one sequence with penalties and Rules
}

func (g *generation) run(ctx context.Context) error {
	tokens := make([][]int, g.model.Batch()) // tokens for the model's next step; nil for a sequence that has ended
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
			if g.results[i].Stop != 0 {
				continue
			}
			token, err := g.extend(i, logits[i])
			if err != nil {
				return fmt.Errorf("decode: sequence %d: %w", i, err)
			}
			tokens[i] = []int{token}
			if g.results[i].Stop != 0 {
				tokens[i] = nil
				live--
			}
		}
	}
	return nil
}

// makeRoom makes the model forget sequences that have no room left, and sets their next tokens to the tokens to keep.
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
		sequence := slices.Concat(g.prompts[i], r.Tokens)
		tokens[i] = sequence[max(0, len(sequence)-keep):]
	}
	return nil
}

// extend chooses the next token of sequence i, and sets Stop if the sequence ends with this token.
func (g *generation) extend(i int, logits []float64) (token int, err error) {
	best, err := likeliest(logits)
	if err != nil {
		return 0, err
	}
	r := &g.results[i]
	logProbs := newLogProbs(logits, best)
	last := len(r.Tokens) == g.MaxTokens-1
	if g.Rules.changes(len(r.Tokens), last) || g.Sampler.penalizes() {
		g.changed = append(g.changed[:0], logits...) // the logits belong to the model
		logits = g.changed
		g.Sampler.penalize(logits, g.prompts[i], r.Tokens)
		g.Rules.apply(logits, g.prompts[i], r.Tokens, g.End, last)
		if best, err = likeliest(logits); err != nil {
			return 0, err
		}
	}
	token = g.Sampler.sample(logits, best, g.random[i])
	logProb := logProbs.of(token)
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
