package decode_test

import (
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/extremes"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

func TestExtremes(t *testing.T) {
	testseed.Proof(t)
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	model := layers.ModelConfig{Vocab: 5, Dim: 4, Layers: 1, Positions: layers.Learned{MaxLen: 8}}
	decoder := must.Get(layers.NewDecoder(p, model))(t)
	pair := newEncoderDecoder(t, tensor.Float32, model)
	mask := layers.Mask{Window: &layers.Window{Left: 2, Right: 0}, Slopes: []float64{0.5}, Distances: &layers.Distances{Buckets: 2, MaxDistance: 4}}

	// session makes a Session, calls use with it, and closes it.
	session := func(c decode.Config, use func(s *decode.Session) ([]float64, error)) ([]float64, error) {
		s, err := decode.New(decoder, c)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		return use(s)
	}
	generate := func(o decode.Options) ([]float64, error) {
		return session(decode.Config{}, func(s *decode.Session) (numbers []float64, err error) {
			results, err := decode.Generate(t.Context(), s, [][]int{{1, 2}}, o)
			for _, r := range results {
				numbers = append(numbers, r.LogProb)
			}
			return numbers, err
		})
	}
	step := func(s interface {
		Step([][]int) ([][]float64, error)
		Batch() int
	}) (numbers []float64, err error) {
		tokens := make([][]int, s.Batch())
		tokens[0] = []int{1, 2}
		logits, err := s.Step(tokens)
		if err != nil {
			return nil, err
		}
		return logits[0], nil
	}
	sampler := decode.Sampler{Temperature: 1, TopK: 3, TopP: 0.9, MinP: 0.1, RepetitionPenalty: 1.1, PresencePenalty: 0.5, FrequencyPenalty: 0.2}
	rules := decode.Rules{NoRepeat: 2, BadWords: [][]int{{1, 0}}, MinTokens: 1, ForceFirst: []int{1}, ForceLast: []int{1}, Suppress: []int{3}, SuppressFirst: []int{2}}
	type sequence struct{ Number, Parent, Token int }
	results := []string{"Hypothesis", "Result"}
	extremes.Run(t, results,
		extremes.Of(decode.Config{Mask: mask, Adapter: &layers.Adapter{}}, func(c decode.Config) ([]float64, error) {
			c.Adapter = nil // the numbers of its Config count only when layers.NewAdapter makes it
			return session(c, func(s *decode.Session) ([]float64, error) { return step(s) })
		}),
		extremes.Of(decode.Seq2SeqConfig{SourceMask: mask, Mask: mask, Adapter: &layers.Adapter{}}, func(c decode.Seq2SeqConfig) ([]float64, error) {
			c.Adapter = nil // as above
			s, err := decode.NewSeq2Seq(pair, c)
			if err != nil {
				return nil, err
			}
			defer s.Close()
			if err := s.Read([][]int{{1, 2, 3}}); err != nil {
				return nil, err
			}
			return step(s)
		}),
		extremes.Of(decode.Options{Sampler: sampler, MaxTokens: 3, End: []int{4}, Rules: rules, Keep: 2}, generate),
		extremes.Of(sampler, func(c decode.Sampler) ([]float64, error) {
			logits := []float64{1, 2, 3, 2, 1}
			c.Penalize(logits, []int{1}, []int{2, 2})
			return c.Probs(logits)
		}),
		extremes.Of(decode.SamplerSettings{Temperature: new(1.0), TopK: new(3), TopP: new(0.9), MinP: new(0.1), RepetitionPenalty: new(1.1), PresencePenalty: new(0.5), FrequencyPenalty: new(0.2)}, func(c decode.SamplerSettings) ([]float64, error) {
			return c.Over(sampler).Probs([]float64{1, 2, 3, 2, 1})
		}),
		extremes.Of(decode.BeamOptions{Width: 2, MaxTokens: 3, End: []int{4}, LengthPenalty: 1, RepetitionPenalty: 1.1, Rules: rules, Ends: decode.EndLikely}, func(o decode.BeamOptions) ([]float64, error) {
			return session(decode.Config{Batch: 2}, func(s *decode.Session) (numbers []float64, err error) {
				found, err := decode.Beam(t.Context(), s, [][]int{{1, 2}}, o)
				if err != nil {
					return nil, err
				}
				for _, h := range found[0] {
					numbers = append(numbers, h.LogProb, h.Score)
				}
				return numbers, nil
			})
		}),
		extremes.Of(sequence{0, 1, 2}, func(c sequence) ([]float64, error) {
			return session(decode.Config{Batch: 2}, func(s *decode.Session) ([]float64, error) {
				if _, err := s.Step([][]int{{c.Token}, {1}}); err != nil {
					return nil, err
				}
				if err := s.Reorder([]int{0, c.Parent}); err != nil {
					return nil, err
				}
				return []float64{float64(s.Room(c.Number))}, s.Forget(c.Number)
			})
		}),
	)
}
