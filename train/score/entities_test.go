package score

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// TestEntitiesPublished compares scores with those in seqeval's README and, for other prefixes, with counts made by
// hand.
func TestEntitiesPublished(t *testing.T) {
	type scores map[string][4]float64 // right, answered, wanted, F1; of all entities under ""
	for _, test := range []struct {
		name          string
		right, answer []string // sequences of tags
		want          scores
	}{
		{"README", []string{"O O O B-MISC I-MISC I-MISC O", "B-PER I-PER O"}, []string{"O O B-MISC I-MISC I-MISC I-MISC O", "B-PER I-PER O"},
			scores{"": {1, 2, 2, 0.5}, "MISC": {0, 1, 1, 0}, "PER": {1, 1, 1, 1}}},
		{"README, a beginning without B", []string{"B-NP I-NP O"}, []string{"I-NP I-NP O"}, scores{"": {1, 1, 1, 1}, "NP": {1, 1, 1, 1}}},
		{"nothing", []string{"O O"}, []string{"O O"}, scores{"": {0, 0, 0, 0}}},
		{"no types", []string{"B I O B B"}, []string{"I I O I I"}, scores{"": {1, 2, 3, 0.4}}},
		{"a sequence ends an entity", []string{"O B-x", "I-x O"}, []string{"O I-x", "B-x O"}, scores{"": {2, 2, 2, 1}, "x": {2, 2, 2, 1}}},
		{"a type ends an entity", []string{"B-x I-x I-y"}, []string{"B-x I-x B-y"}, scores{"": {2, 2, 2, 1}, "x": {1, 1, 1, 1}, "y": {1, 1, 1, 1}}},
		{"missing answers", []string{"B-x O B-x I-x"}, []string{"B-x O"}, scores{"": {1, 1, 2, 2. / 3}, "x": {1, 1, 2, 2. / 3}}},
		{"a hyphen in the type", []string{"B-x-y"}, []string{"I-x-y"}, scores{"": {1, 1, 1, 1}, "x-y": {1, 1, 1, 1}}},
		{"BILOU", []string{"U-x U-x B-x I-x L-x L-x"}, []string{"B-x B-x B-x I-x I-x B-x"}, scores{"": {4, 4, 4, 1}, "x": {4, 4, 4, 1}}},
		{"BMES", []string{"B M M E S B E"}, []string{"B I I I B B I"}, scores{"": {3, 3, 3, 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var e Entities
			for i, right := range test.right {
				e.Add(strings.Fields(test.answer[i]), strings.Fields(right))
			}
			got := scores{}
			for _, s := range append(e.Types(), e.Total()) {
				got[s.Class] = [4]float64{float64(s.Right), float64(s.Answers), float64(s.Rows), s.F1}
			}
			for name, want := range test.want {
				if got[name] != want {
					t.Errorf("%q: got %v, want %v", name, got[name], want)
				}
			}
			if len(got) != len(test.want) || e.Others != 0 {
				t.Errorf("got %v and %d other tags, want %v", got, e.Others, test.want)
			}
		})
	}
	var e Entities
	e.Add(strings.Fields("x NOUN b-x"), strings.Fields("NOUN b-x B-x X-x o"))
	if total := e.Total(); e.Others != 4 || total.Answers != 0 || total.Rows != 1 {
		t.Errorf("got %d other tags and %+v, want 4 and one entity", e.Others, total)
	}
}

func TestFindEntities(t *testing.T) {
	for tags, want := range map[string][]Entity{
		"":                            nil,
		"O - NOUN":                    nil,
		"B-x I-x O I-y":               {{"x", 0, 2}, {"y", 3, 4}},
		"B-x B-x I-y E-y E-y S-z U-z": {{"x", 0, 1}, {"x", 1, 2}, {"y", 2, 4}, {"y", 4, 5}, {"z", 5, 6}, {"z", 6, 7}},
		"B M L":                       {{"", 0, 3}},
		"x-B x-I O y-I z-z-S":         {{"x", 0, 2}, {"y", 3, 4}, {"z-z", 4, 5}},
		"B-B I-B B-I":                 {{"B", 0, 2}, {"I", 2, 3}},
	} {
		if got := FindEntities(strings.Fields(tags)); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", tags, got, want)
		}
	}
}

// TestEntitiesLikeSeqeval compares the scores of 4,000 random sequences with those of seqeval and conlleval.
func TestEntitiesLikeSeqeval(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/entities.json"))(t)
	var cases []struct {
		Prefixes string
		Types    int
		Scores   map[string][4]float64
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) != 40 {
		t.Fatalf("%d cases, error %v; want 40", len(cases), err)
	}
	state := uint64(1) // the generator in entities.py
	draw := func(n int) int {
		state = state*6364136223846793005 + 1442695040888963407
		return int((state >> 33) % uint64(n))
	}
	for i, c := range cases {
		tag := func() string {
			prefix := c.Prefixes[draw(len(c.Prefixes))]
			if prefix == 'O' {
				return "O"
			}
			return string(prefix) + "-" + string("abc"[draw(c.Types)])
		}
		if types := 1 + draw(3); types != c.Types {
			t.Fatalf("case %d: drew %d types, want %d: entities.py has another generator", i, types, c.Types)
		}
		var e Entities
		for range 100 {
			right := make([]string, 1+draw(8))
			for j := range right {
				right[j] = tag()
			}
			answer := make([]string, len(right))
			for j := range answer {
				if answer[j] = right[j]; draw(4) == 0 {
					answer[j] = tag()
				}
			}
			e.Add(answer, right)
		}
		scores := e.Types()
		if !slices.IsSortedFunc(scores, func(a, b ClassScore) int { return b.Rows - a.Rows }) {
			t.Errorf("case %d: got the types %v, want the commonest first", i, scores)
		}
		scores = append(scores, e.Total())
		for _, s := range scores {
			want := c.Scores[s.Class]
			if [3]float64{float64(s.Right), float64(s.Answers), float64(s.Rows)} != [3]float64(want[:3]) || math.Abs(s.F1-want[3]) > 1e-12 {
				t.Errorf("case %d (%s), type %q: got %+v, want %v", i, c.Prefixes, s.Class, s, want)
			}
		}
		if len(scores) != len(c.Scores) {
			t.Errorf("case %d: got %d scores, want %d", i, len(scores), len(c.Scores))
		}
	}
}
