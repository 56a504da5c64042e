package serve

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/task"
)

// A model that learned numbers answers with numbers, and has no alternatives. If it learned pairs, an input has a tab,
// and the page has two fields with the names of their columns.
func TestNumbers(t *testing.T) {
	for _, pairs := range []bool{false, true} {
		input := "ab"
		if pairs {
			input = "a\tb"
		}
		rule := data.Rule{
			Name: "length", Kind: data.KindRegression, Alphabet: "ab", MaxLen: 5, Pairs: pairs, Example: input,
			Sample: func(rng *rand.Rand, _ int) string { return input[:len(input)-1] + "ab"[rng.IntN(2):][:1] },
			Answer: func(source string) (string, error) { return strconv.Itoa(len(source)), nil },
		}
		m := small(t, task.Defaults(rule))
		m.Config.Data.Columns = []string{"<question>", "3", "label"} // the second has no name
		h, s := start(t, m, Options{})
		got := replied(t, s.URL+"/predict", `{"input": ["`+strings.ReplaceAll(input, "\t", `\t`)+`"]}`, 200, `"answer":`)
		must.Lack(t, got.body, `"answer":"`, "probability") // but a number
		replied(t, s.URL+"/predict", `{"input": "a", "top": 2}`, 400, "top")
		for path, words := range map[string]map[string]bool{
			"/openapi.json": {`"answer":{"type":"number"}`: true, `"top"`: false, "with a tab between": pairs},
			"/":             {`id="top"`: false, `id="second"`: pairs, `id="lines"`: !pairs, ">&lt;question&gt; <": pairs, ">Second text <": pairs},
		} {
			got := recorded(h, "GET", path, nil).Body.String()
			for word, want := range words {
				if strings.Contains(got, word) != want {
					t.Errorf("%s, pairs %t: %s in it: %t, want %t", path, pairs, word, !want, want)
				}
			}
		}
	}
}
