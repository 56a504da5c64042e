package serve

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// The endpoint attention answers with the weights from Model.Attention.
func TestAttention(t *testing.T) {
	m := named(t, "dates")
	_, s := start(t, m, Options{})
	const input = "3 may 1999"
	want := must.Get(m.Attention(input, "decoder"))(t)
	got := replied(t, s.URL+"/attention", `{"input": "3 may 1999", "layer": "decoder"}`, 200)
	var a struct {
		Input, Answer, Key string
		Layers             []struct {
			Name, Meaning string
			Rows, Columns []string
			Heads         [][]float32
		}
	}
	must.Do(t, json.Unmarshal([]byte(got.body), &a))
	if a.Input != input || a.Answer != want.Answer || a.Key != want.Key || len(a.Layers) != len(want.Layers) || len(a.Layers) < 2 {
		t.Fatalf("got %+v, want %+v", a, want)
	}
	for i, l := range a.Layers {
		w := want.Layers[i]
		if l.Name != w.Name || l.Meaning != w.Meaning || !reflect.DeepEqual(l.Rows, w.Rows) || !reflect.DeepEqual(l.Columns, w.Columns) || len(l.Heads) != len(w.Heads) {
			t.Fatalf("got %+v, want %+v", l, w)
		}
		for head, weights := range l.Heads {
			if len(weights) != len(w.Heads[head]) {
				t.Fatalf("got %d weights, want %d", len(weights), len(w.Heads[head]))
			}
			for j, x := range weights {
				if y := w.Heads[head][j]; math.Abs(float64(x-y)) > 1e-3*float64(y) {
					t.Fatalf("weight %d: got %v, want %v", j, x, y)
				}
			}
		}
	}
}

func TestWeights(t *testing.T) {
	got, err := json.Marshal(weights{1, 0, 1.0 / 3, 1e-20, float32(math.NaN()), float32(math.Inf(1))})
	if want := "[1,0,0.3333,1e-20,null,null]"; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// The page has a Content-Security-Policy, and escapes the task's name, description and example.
func TestPage(t *testing.T) {
	for _, m := range []string{"dates", "reverse", "text"} {
		model := writer(t)
		if m != "text" {
			model = named(t, m)
		}
		model.Config.Task.About, model.Config.Task.Example = "</p><script>alert(1)</script>\u202e\x1b", `</textarea><script>alert("2")</script>`
		h := must.Get(New(model, Options{MaxBeam: 7, MaxTokens: 77}))(t)
		w := recorded(h, "GET", "/", nil)
		body, policy := w.Body.String(), w.Header().Get("Content-Security-Policy")
		if w.Code != 200 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.HasPrefix(policy, "default-src 'none'") || !strings.Contains(policy, "connect-src 'self'") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: got status %d and policy %q, want 200 and a policy that allows only this page", m, w.Code, policy)
		}
		for words, want := range map[string]bool{
			"<script>alert": false, "\u202e": false, "\x1b": false, "&lt;/textarea&gt;&lt;script&gt;": true, "http://": false, "https://": false,
			`id="beam" type="number" min="1" max="7"`: m == "dates", `max="77" value="77"`: m == "text", "Answer each line by itself": m != "text",
		} {
			if got := strings.Contains(body, words); got != want {
				t.Errorf("%s: %q is in the page: %t, want %t", m, words, got, want)
			}
		}
	}
}
