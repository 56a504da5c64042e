package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

func pairModel(t testing.TB, name string) *model.Model {
	return must.Get(model.Open("../../model/testdata/pairs/" + name))(t)
}

// rerank sends a request for a ranking, and checks the status of the answer.
func rerank(t *testing.T, url, body string, status int) openAIAnswer {
	t.Helper()
	return askOpenAI(t, url+"/v1/rerank", body, status)[0]
}

// Documents are texts or objects, and come back as objects if the request asks for them.
func TestRerank(t *testing.T) {
	t.Parallel()
	m := pairModel(t, "bert-cross")
	_, s := startOpenAI(t, m, Options{MaxInputs: 4})
	ranked, tokens, err := m.Rank(t.Context(), "the cat", []string{"a dog", "who sat ?", "a dog"}, 0)
	must.Do(t, err)
	const request = `{"model": "fox", "query": "the cat", "documents": ["a dog", {"text": "who sat ?", "title": "t"}, "a dog"]`
	for _, test := range []struct {
		more      string
		count     int
		documents bool
	}{
		{"", 3, false},
		{`, "top_n": null, "return_documents": false, "rank_fields": ["text"], "truncation": true, "user": "me"`, 3, false},
		{`, "top_n": 2, "return_documents": true`, 2, true},
		{`, "top_n": 1000000000, "return_documents": true`, 3, true},
	} {
		got := rerank(t, s.URL, request+test.more+"}", 200)
		if len(got.Results) != test.count || got.Model != "fox" || got.Usage.TotalTokens != tokens {
			t.Fatalf("%s: %+v, want %d results and %d tokens", test.more, got, test.count, tokens)
		}
		for i, r := range got.Results {
			want := ""
			if test.documents {
				want = []string{`{"text":"a dog"}`, `{"text":"who sat ?"}`, `{"text":"a dog"}`}[r.Index]
			}
			if r.Index != ranked[i].Index || r.Score != ranked[i].Score || string(r.Document) != want {
				t.Errorf("%s: result %d is %+v %s, want %+v %s", test.more, i, r, r.Document, ranked[i], want)
			}
		}
	}
}

// Wrong requests get the reason, and the parameter that is wrong.
func TestWrongRerank(t *testing.T) {
	t.Parallel()
	_, s := startOpenAI(t, pairModel(t, "bert-cross"), Options{MaxInputs: 4})
	_, labels := startOpenAI(t, pairModel(t, "bert-labels"), Options{})
	for body, want := range map[string]string{
		`{"documents": ["a"]}`:                                         "query must be a text, got none",
		`{"query": 3, "documents": ["a"]}`:                             "query must be a text, got number",
		`{"query": ["a"], "documents": ["a"]}`:                         "query must be a text, got array",
		`{"query": "a"}`:                                               `documents must be a list of texts or of objects such as {"text": "…"}, with 1 to 4 elements, got 0`,
		`{"query": "a", "documents": []}`:                              "with 1 to 4 elements, got 0",
		`{"query": "a", "documents": "a"}`:                             "documents must be a list of texts",
		`{"query": "a", "documents": ["a","b","c","d","e"]}`:           "with 1 to 4 elements, got 5",
		`{"query": "a", "documents": ["a", null]}`:                     "documents must be a list of texts or of objects such as {\"text\": \"…\"}, got an element that is neither",
		`{"query": "a", "documents": ["a", {"title": "b"}]}`:           "got an element that is neither",
		`{"query": "a", "documents": ["a", {"text": 1}]}`:              "got an element that is neither",
		`{"query": "a", "documents": [["a"]]}`:                         "got an element that is neither",
		`{"query": "a", "documents": ["a"], "top_n": 0}`:               "top_n must be at least 1, got 0",
		`{"query": "a", "documents": ["a"], "top_n": -5}`:              "top_n must be at least 1, got -5",
		`{"query": "a", "documents": ["a"], "top_n": 1.5}`:             "top_n must be a whole number",
		`{"query": "a", "documents": ["a"], "top_n": 1e99}`:            "top_n must be a whole number",
		`{"query": "a", "documents": ["a"], "return_documents": 1}`:    "return_documents must be true or false",
		`{"query": "a", "documents": ["a"], "rank_fields": ["b"]}`:     `rank_fields can't be ["b"] here`,
		`{"query": "a", "documents": ["a"], "max_tokens_per_doc": 10}`: "the endpoint doesn't know max_tokens_per_doc",
		`{"query": "a", "documents": ["a"`:                             "the body must be JSON",
	} {
		if got := rerank(t, s.URL, body, 400); !strings.Contains(got.Error.Message, want) {
			t.Errorf("%s: %q, want %q", body, got.Error.Message, want)
		}
	}
	if got := rerank(t, s.URL, `{"model": "other", "query": "a", "documents": ["a"]}`, 404); got.Error.Param != "model" {
		t.Errorf("%+v", got)
	}
	if got := rerank(t, labels.URL, `{"query": "a", "documents": ["a"]}`, 400); !strings.Contains(got.Error.Message, "only models that score two texts") {
		t.Errorf("%+v", got)
	}
}

// A document that the model can't read is named.
func TestUnreadDocument(t *testing.T) {
	c := must.Get(task.Named("regression", 0))(t)
	c.Data.File, c.Data.Columns = filepath.Join(t.TempDir(), "rows.tsv"), []string{"query", "document", "label"}
	must.Do(t, os.WriteFile(c.Data.File, []byte("query\tdocument\tlabel\n"+strings.Repeat("a cat\ta dog\t1\na cat\tthe cat\t0\n", 20)), 0o666))
	_, s := startOpenAI(t, small(t, c), Options{})
	if got := rerank(t, s.URL, `{"query": "a\tcat", "documents": ["a\tdog", ""]}`, 400); got.Error.Param != "documents[1]" || !strings.Contains(got.Error.Message, "two texts") {
		t.Errorf("%+v", got)
	}
	if got := rerank(t, s.URL, `{"query": "a\tcat", "documents": ["a\tdog"]}`, 200); len(got.Results) != 1 || got.Usage.TotalTokens != 5 {
		t.Errorf("%+v", got)
	}
}

// Of 16 clients that ask at the same time, each gets the answer that it gets alone.
func TestManyClients(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	const models = "../../model/testdata/"
	several := t.TempDir()
	must.Do(t, os.CopyFS(several, os.DirFS(models+"pairs/bert-labels")))
	config := string(must.Get(os.ReadFile(several + "/config.json"))(t))
	must.Do(t, os.WriteFile(several+"/config.json", []byte(strings.Replace(config, "{", `{"problem_type": "multi_label_classification",`, 1)), 0o666))
	words := strings.Fields("the a cat dog sat on mat is red blue who what ran far")
	for folder, request := range map[string]string{
		models + "pairs/bert-cross":  `{"query": "who", "documents": %s, "top_n": 3}`,
		models + "pairs/bert-labels": `{"input": %s, "labels": ["sport", "music"], "top": 2}`,
		models + "entities/pieces":   `{"input": %s, "entities": "simple"}`,
		models + "qa/bert-64":        `{"input": %s, "top": 3, "no_answer": true}`,
		several:                      `{"input": %s, "top": 2}`,
	} {
		m, path, opened := must.Get(model.Open(folder))(t), "/predict", start
		if m.Config.Describe().Rank == nil {
			path, opened = "/v1/rerank", startOpenAI
		}
		_, s := opened(t, m, Options{})
		rng := rand.New(rand.NewPCG(1, 2))
		var bodies [32]string
		var alone [32]any
		for i := range bodies {
			texts := make([]string, 1+rng.IntN(9))
			for k := range texts {
				texts[k] = words[rng.IntN(len(words))] + "\t" + strings.Repeat(words[rng.IntN(len(words))]+" ", 1+rng.IntN(9))
			}
			bodies[i] = fmt.Sprintf(request, must.Get(json.Marshal(texts))(t))
			must.Do(t, json.Unmarshal([]byte(replied(t, s.URL+path, bodies[i], 200).body), &alone[i]))
		}
		c := &clients{T: t}
		for client := range 16 {
			c.do(func() error {
				for i := client; i < len(bodies); i += 16 {
					got, err := post(t.Context(), s.URL+path, bodies[i])
					var parsed any
					if err == nil {
						err = json.Unmarshal([]byte(got.body), &parsed)
					}
					if err != nil || !near(parsed, alone[i]) {
						return fmt.Errorf("%s, %s: got %s, %v, want %v", folder, bodies[i], got.body, err, alone[i])
					}
				}
				return nil
			})
		}
		c.Wait()
	}
}

// near reports whether two values from JSON are the same, up to the rounding of numbers.
func near(a, b any) bool {
	switch a := a.(type) {
	case float64:
		x, ok := b.(float64)
		return ok && math.Abs(a-x) < 1e-5
	case []any:
		x, ok := b.([]any)
		return ok && slices.EqualFunc(a, x, near)
	case object:
		x, ok := b.(object)
		return ok && maps.EqualFunc(a, x, near)
	}
	return a == b
}

// A model of inference chooses among the labels of a request.
func TestPredictLabels(t *testing.T) {
	t.Parallel()
	m := pairModel(t, "bert-labels")
	_, s := start(t, m, Options{MaxInputs: 4})
	_, other := start(t, pairModel(t, "bert-cross"), Options{})
	for _, test := range []struct {
		more   string
		labels model.Labels
		top    int
	}{
		{`"labels": ["sport", "music"]`, model.Labels{Names: []string{"sport", "music"}}, 0},
		{`"labels": "sport"`, model.Labels{Names: []string{"sport"}}, 0},
		{`"labels": ["sport", "music"], "top": 1, "template": "about {}"`, model.Labels{Names: []string{"sport", "music"}, Template: "about {}"}, 1},
		{`"labels": ["sport", "music"], "several": true`, model.Labels{Names: []string{"sport", "music"}, Several: true}, 2},
	} {
		want := must.Get(m.PredictAll(t.Context(), []string{"the cat", "a dog\tsat"}, model.PredictOptions{Top: test.top, Labels: &test.labels}))(t)
		list := must.Get(json.Marshal(map[string]any{"answers": want}))(t)
		replied(t, s.URL+"/predict", `{"input": ["the cat", "a dog\tsat"], `+test.more+"}", 200, string(list))
	}
	for body, want := range map[string]string{
		`{"input": "a", "labels": []}`:                                 "labels must have at least one label",
		`{"input": "a", "labels": [1]}`:                                "labels must be a text, or a list of texts, up to 4 for all inputs together, got number",
		`{"input": ["a", "b"], "labels": ["c", "d", "e"]}`:             "labels must be at most 2 for 2 inputs, got 3",
		`{"input": "a", "labels": ["c"], "template": "about"}`:         "template must have {} once",
		`{"input": "a", "several": true}`:                              "template and several are for labels",
		`{"input": "a", "labels": ["c"], "several": "yes"}`:            "several must be true or false",
		`{"input": "a", "labels": ["c", "d"], "top": 100000}`:          "top must be",
		`{"input": "a", "labels": ["c", "d"], "threshold": "c=0.5"}`:   "threshold",
		`{"input": "a", "labels": ["c", "d"], "labels": ["c", "d"]}`:   "labels",
		`{"input": "a", "labels": null, "template": "about {}"}`:       "template and several are for labels",
		`{"input": "a", "labels": ["c", null], "template": "is a {}"}`: "null among them",
	} {
		replied(t, s.URL+"/predict", body, 400, want)
	}
	replied(t, other.URL+"/predict", `{"input": "a", "labels": ["c"]}`, 400, "the keys are")
}
