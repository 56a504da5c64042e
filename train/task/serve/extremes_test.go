package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/extremes"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

func TestExtremes(t *testing.T) {
	rule := must.Get(toy.Named("reverse", 4))(t)
	rule.Kind, rule.MaxAnswer = data.KindSeq2Seq, 4
	seq2seq, text := small(t, task.Defaults(rule)), writer(t)

	// post sends a request. It panics if the answer has none of these statuses.
	post := func(m *model.Model, o Options, path string, request any, statuses ...int) error {
		body, err := json.Marshal(request)
		if err != nil {
			return err
		}
		h, err := New(m, o)
		if err != nil {
			return err
		}
		w := recorded(h, "POST", path, bytes.NewReader(body))
		if slices.Contains(statuses, w.Code) {
			return nil
		}
		panic(fmt.Sprintf("%s %s: status %d, want %v: %s", path, body, w.Code, statuses, w.Body))
	}
	type (
		predict struct {
			Input []string `json:"input"`
			Beam  int      `json:"beam"`
			Top   int      `json:"top"`
		}
		generate struct {
			Prompt string `json:"prompt"`
			Tokens int    `json:"tokens"`
			decode.Sampler
			Seed uint64 `json:"seed"`
		}
	)
	asked := predict{[]string{"abc"}, 1, 1}
	wide := predict{[]string{"abc"}, 99_999_999, 99_999_999}
	written := generate{"The", 3, decode.Sampler{Temperature: 0.7, TopK: 9, TopP: 0.9}, 1}
	extremes.Run(t, []string{"Error"},
		extremes.Of(Options{}, func(c Options) ([]float64, error) {
			if err := post(seq2seq, c, "/predict", asked, 200); err != nil {
				return nil, err
			}
			if err := post(seq2seq, c, "/predict", wide, 400); err != nil {
				return nil, err
			}
			return nil, post(text, c, "/generate", written, 200)
		}),
		extremes.Of(asked, func(c predict) ([]float64, error) { return nil, post(seq2seq, Options{}, "/predict", c, 200, 400) }),
		extremes.Of(written, func(c generate) ([]float64, error) { return nil, post(text, Options{}, "/generate", c, 200, 400) }),
	)
}
