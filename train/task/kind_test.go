package task

import (
	"slices"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
)

// A kind has a task of its name, which learns a file, and a Coder.
func TestKinds(t *testing.T) {
	for _, k := range kinds {
		about := k.about()
		name := string(about.Name)
		c, err := Named(name, 4)
		if err != nil || !slices.Contains(Names(), name) || c.Kind().Name != about.Name || c.Task.About == "" {
			t.Errorf("the task %s is of kind %q and about %q, %v", name, c.Kind().Name, c.Task.About, err)
		}
		if c.Task.Sample != nil || about.Columns != nil && len(about.Columns) != 2 {
			t.Errorf("the task %s has a Sample, or the columns %q", name, about.Columns)
		}
		vocab, err := tokenizer.NewVocab("ab")
		if err != nil {
			t.Fatal(err)
		}
		rule := data.Rule{Name: name, Kind: about.Name, Source: vocab, MaxLen: 4}
		switch {
		case about.Sequences:
			rule.MaxAnswer = 4
		case about.Columns != nil && about.AnswerUnits:
			rule.Target = vocab
		case about.Columns != nil:
			rule.Classes = []string{"a", "b"}
		}
		coder, err := data.NewCoder(rule)
		if err != nil {
			t.Errorf("%s has no Coder: %v", name, err)
		} else if l := coder.Layout(); (l.Start >= 0) != about.Sequences || l.TargetLen == 0 != (rule.Classes != nil) {
			t.Errorf("%s has the layout %+v", name, l)
		}
	}
	if k := (&Config{Task: data.Rule{Kind: "none"}}).Kind(); k.Name != "" || k.Generates {
		t.Errorf("a kind that there isn't is %+v", k)
	}
}

// The words for results depend on the kind and on where examples come from.
func TestKindWords(t *testing.T) {
	vocab, err := tokenizer.NewVocab("ab")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, file  string
		source      tokenizer.Tokenizer
		unit, right string
		classes     bool
	}{
		{"reverse", "", nil, "sequences", "exactly right", false},
		{"brackets", "", nil, "sequences", "exactly right", true},
		{"dates", "", nil, "sequences", "exactly right", false},
		{"text", "x", nil, "characters", "predicted", false},
		{"text", "x", vocab, "tokens", "predicted", false},
		{"tagging", "x", vocab, "tags", "right", true},
		{"classification", "x", vocab, "labels", "right", true},
		{"seq2seq", "x", vocab, "rows", "exactly right", false},
	} {
		c, err := Named(tc.name, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.Data.File, c.Task.Source = tc.file, tc.source
		if k := c.Kind(); k.Unit != tc.unit || k.Right != tc.right || k.Classes != tc.classes {
			t.Errorf("%s of %q counts %s %s, classes: %v", tc.name, tc.file, k.Unit, k.Right, k.Classes)
		}
	}
}
