package decode_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers/decode"
)

// TestBeamTransformers compares searches with the transformers library: see testdata/beam.py.
func TestBeamTransformers(t *testing.T) {
	const vocab = 11
	type list []int // in JSON, a number or numbers
	var cases []struct {
		Seed    int
		Prompt  []int
		Options struct {
			Beams         int     `json:"num_beams"`
			MaxTokens     int     `json:"max_new_tokens"`
			LengthPenalty float64 `json:"length_penalty"`
			Early         any     `json:"early_stopping"`
			NoRepeat      int     `json:"no_repeat_ngram_size"`
			Repetition    float64 `json:"repetition_penalty"`
			First         any     `json:"forced_bos_token_id"`
			Last          any     `json:"forced_eos_token_id"`
			MinLength     int     `json:"min_length"`
			MinTokens     int     `json:"min_new_tokens"`
			BadWords      [][]int `json:"bad_words_ids"`
			Suppress      []int   `json:"suppress_tokens"`
			SuppressFirst []int   `json:"begin_suppress_tokens"`
			End           any     `json:"eos_token_id"`
			Renormalize   bool    `json:"renormalize_logits"`
		}
		Tokens [][]int
		Scores []float64
	}
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile("testdata/beam.json"))(t), &cases))
	ids := func(value any) (ids list) {
		switch v := value.(type) {
		case float64:
			ids = list{int(v)}
		case []any:
			for _, x := range v {
				ids = append(ids, int(x.(float64)))
			}
		}
		return ids
	}
	rows := 0
	for i, c := range cases {
		end := ids(c.Options.End)
		if end == nil {
			end = list{vocab - 1}
		}
		o := decode.BeamOptions{
			Width: c.Options.Beams, MaxTokens: c.Options.MaxTokens, End: end, LengthPenalty: c.Options.LengthPenalty, RepetitionPenalty: c.Options.Repetition, Renormalize: c.Options.Renormalize,
			Rules: decode.Rules{
				NoRepeat: c.Options.NoRepeat, BadWords: c.Options.BadWords, MinTokens: max(c.Options.MinTokens, c.Options.MinLength-1),
				ForceFirst: ids(c.Options.First), ForceLast: ids(c.Options.Last), Suppress: c.Options.Suppress, SuppressFirst: c.Options.SuppressFirst,
			},
		}
		if c.Options.MinTokens > 0 { // it comes before min_length
			o.MinTokens = c.Options.MinTokens
		}
		switch c.Options.Early {
		case false:
			o.Ends = decode.EndLikely
		case true:
			o.Ends = decode.EndFull
		}
		if o.Width == 1 {
			o.Ends = decode.EndFull
		}
		m := newFake(o.Width, vocab)
		m.logits = func(sequence []int) []float64 {
			h, row := int64(c.Seed), make([]float64, vocab) // products need 64 bits
			for _, id := range sequence[max(0, len(sequence)-3):] {
				h = (h*31 + int64(id) + 1) * 7919 % 1000003
			}
			for id := range row {
				row[id] = float64((h*int64(id+7)*104729+int64(id)*7919)%1000003) / 1000003 * 6
			}
			row[vocab-1] += float64(len(sequence)) / 8
			return row
		}
		found := beam(t, m, [][]int{c.Prompt}, o)[0]
		for j, want := range c.Tokens {
			if c.Scores != nil && c.Scores[j] < -1e6 {
				continue // not a hypothesis, but what the reference fills up with
			}
			if n := slices.IndexFunc(want, func(id int) bool { return slices.Contains(end, id) }); n >= 0 {
				want = want[:n]
			}
			if rows++; j >= len(found) || !slices.Equal(found[j].Tokens, want) {
				t.Errorf("case %d, hypothesis %d: got %+v, want %v; the case: %+v", i, j, found, want, c)
				break
			}
			if c.Scores != nil && math.Abs(found[j].Score-c.Scores[j]) > 1e-4*(1+math.Abs(c.Scores[j])) {
				t.Errorf("case %d, hypothesis %d: got the score %g, want %g", i, j, found[j].Score, c.Scores[j])
			}
		}
	}
	if rows < 250 {
		t.Errorf("only %d hypotheses were compared", rows)
	}
}
