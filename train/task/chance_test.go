package task

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
)

// Of models that answer at random, nearly all count as guesses, and of good ones none.
func TestGuesses(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	task := &Task{Model: &Model{}, set: &rowSet{labels: &labelCounts{names: []string{"no", "yes"}, validates: []int{40, 60}, best: 1, total: 100}}}
	task.Config.Data.File = "rows.tsv"
	for _, kind := range []kind{classificationKind, embedKind, regressionKind} {
		task.kind, task.Config.Task.Kind = kind, kind.about().name
		for _, good := range []bool{false, true} {
			count := 0
			const times, n = 200, 100
			for range times {
				r, right := &Report{}, 0
				for i := range n {
					r.Judged = append(r.Judged, Judged{References: []string{fmt.Sprint(i)}})
					rank, x := 1+random.IntN(n), random.NormFloat64()
					reference := random.NormFloat64()
					if good {
						rank, reference = 1+random.IntN(5), x/10+reference/50
					}
					if right++; random.Float64() > 0.6 && !good {
						right--
					}
					r.Ranking.Add(rank)
					r.Numbers.Add(x/10, reference)
				}
				s := Score{Name: "accuracy", Value: float64(right) / n}
				switch kind.about().name {
				case data.KindEmbed:
					s.Name, s.Value = "mrr", r.Ranking.MRR()
				case data.KindRegression:
					s.Name, s.Value = "r2", r.Numbers.RSquared()
				}
				if task.guesses(r, s) {
					count++
				}
			}
			if share := float64(count) / times; !good && share < 0.9 || good && share > 0 {
				t.Errorf("%s: a share of %v of the models counts as guesses; good is %v", task.Config.Task.Kind, share, good)
			}
		}
	}
	scored := &Report{Judged: make([]Judged, 100)}
	for value, want := range map[float64]bool{0.1: true, 0.2: false, -0.9: true} {
		if got := task.guesses(scored, Score{Name: "spearman", Value: value}); got != want {
			t.Errorf("a correlation of %v counts as guesses: %v", value, got)
		}
	}
	if task.guesses(scored, Score{Name: "exact_match", Value: 0.01}) {
		t.Error("1 % right texts count as guesses")
	}
}

// A run on rows says how likely its difference from the baseline is by chance, and whether a model of pairs guesses.
func TestSummaryOfChance(t *testing.T) {
	t.Parallel()
	pairs := func(label func(i int) string) string {
		var s strings.Builder
		for i := range 80 {
			fmt.Fprintf(&s, "%c%c%c\t%c%c\t%s\n", 'a'+i%5, 'a'+i%7, 'a'+i%11, 'a'+i%13, 'a'+i%3, label(i))
		}
		return s.String()
	}
	for name, test := range map[string]struct {
		rows    string
		guesses bool
	}{
		"noise":  {pairs(func(i int) string { return []string{"no", "yes"}[i*i/3%2] }), true},
		"signal": {pairs(func(i int) string { return []string{"no", "yes"}[i%5/3] }), false},
	} {
		c := withFile(t, "classification", "rows.tsv", test.rows)
		c.Data.Columns, c.Data.ValidationFile, c.Training.MaxEpochs = []string{"1", "2", "3"}, c.Data.File, 1
		c.Mix = name == "signal"
		task, dir := trained(t, c)
		read := must.Get(ReadRun(dir))(t)
		s := read.Summary
		r := judged(t, task, task.Examples(), PredictOptions{})
		if s.Chance == nil || *s.Chance != *r.Chance || s.Guesses != test.guesses {
			t.Errorf("%s: the summary is %+v, want a Chance and Guesses %v", name, s, test.guesses)
		}
		if got := task.BesideBaseline(s); strings.Contains(got, "--from") != test.guesses {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
