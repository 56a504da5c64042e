package report

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/score"
	"github.com/heed-go/heed/train/task"
	"github.com/heed-go/heed/train/task/judge"
)

// evaluated returns the page about a model's answers to all validation examples and more.
func evaluated(t *testing.T, learned *task.Task, more ...data.Example) string {
	t.Helper()
	r := must.Get(judge.Answers(t.Context(), learned.Model, append(learned.Examples(), more...), model.PredictOptions{}))(t)
	var s strings.Builder
	must.Do(t, WriteEvaluation(t.Context(), &s, "<test>.csv", learned.Model, r))
	return s.String()
}

// The page of an evaluation has mistakes of every class, and each links to its explanation. It escapes texts and needs
// no script.
func TestEvaluationOfLabels(t *testing.T) {
	learned, _ := trained(t, "classification", rows(func(i int) string { return hostile[i/2%2] }), nil)
	var more []data.Example
	for i := range 300 { // every second one must be wrong
		more = append(more, data.Example{Source: fmt.Sprintf("okapi%d %s", i, hostile[i%len(hostile)]), Answer: []string{hostile[0], "new <b>"}[i%2]})
	}
	page := evaluated(t, learned, more...)
	wantIn(t, page, []string{"classification: &lt;test&gt;.csv", "Scores by class", "new &lt;b&gt;: 150 of 150 rows wrong", "Beyond the model: ", "macro F1", "<h2>Why it answers so</h2>", "linear baseline"},
		[]string{"alert(1)</script>", "<img", "<b>", "\u202e", "\a", "\u2028", "NaN", "ZgotmplZ", "<script", "What it attends to", "Wrong answers"})
	links := regexp.MustCompile(`href="#why-(\d+)"`).FindAllStringSubmatch(page, -1)
	if n := strings.Count(page, `<section class="why"`); n < shownExamples || n != len(links) {
		t.Errorf("the page has %d explanations and %d links, want the same number, and at least %d", n, len(links), shownExamples)
	}
	for i, link := range links {
		if link[1] != strconv.Itoa(i+1) || !strings.Contains(page, fmt.Sprintf(`id="why-%d"`, i+1)) {
			t.Errorf("link %d leads to why-%s, want an explanation with the same number", i+1, link[1])
		}
	}
	if !regexp.MustCompile(`okapi\d+ <small>[+-]\d+\.\d\d</small>`).MatchString(page) {
		t.Error("no word of the explanations has its value as text")
	}
	if len(page) > 100_000 {
		t.Errorf("the page has %d bytes, want at most 100000", len(page))
	}
}

func TestEvaluationStops(t *testing.T) {
	learned, _ := trained(t, "classification", rows(func(i int) string { return []string{"a", "b"}[i%2] }), nil)
	r := must.Get(judge.Answers(t.Context(), learned.Model, learned.Examples(), model.PredictOptions{}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var s strings.Builder
	if err := WriteEvaluation(ctx, &s, "a", learned.Model, r); !errors.Is(err, context.Canceled) || s.Len() > 0 {
		t.Errorf("after the end of the context, got %v and %d bytes, want its error and nothing", err, s.Len())
	}
}

// Each class lists its own mistakes. The class with the most mistakes comes first.
func TestByClass(t *testing.T) {
	var c score.Confusion
	var wrong []judge.Judged
	for i, right := range []string{"b", "a", "b", "", "c"} {
		c.Add(map[bool]string{true: "c", false: "x"}[right == "c"], right)
		if right != "c" {
			wrong = append(wrong, judge.Judged{Source: strconv.Itoa(i), References: []string{right}})
		}
	}
	groups, titles := byClass(c.Classes(), wrong)
	if got, want := fmt.Sprintf("%q", titles), `["b: 2 of 2 rows wrong" "(none): 1 of 1 row wrong" "a: 1 of 1 row wrong"]`; got != want {
		t.Errorf("the titles are %s, want %s", got, want)
	}
	if len(groups) != 3 || len(groups[0]) != 2 || groups[0][1].Source != "2" || groups[2][0].Source != "1" {
		t.Errorf("the groups are %v, want the mistakes 0 and 2, then 3, then 1", groups)
	}
}
