package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
)

// heed explain prints the words that Explain returns, strongest first, for published models and for runs.
func TestExplain(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run")
	rows := newFile(t, "rows.tsv", "text\tlabel\n"+lines(60, func(i int) string { return fmt.Sprintf("some %c words %d\t%c", "xy"[i%2], i%7, "xy"[i%2]) }))
	succeed(t, "train", "--task=classification", "--data="+rows, "--max-epochs=2", "--out="+run)
	const text = "some x words\x1b and y"
	for _, dir := range []string{run, publishedFolder(t, "llama-classes")} {
		m := must.Get(model.Open(dir))(t)
		answer := must.Get(m.PredictAll(t.Context(), []string{text}, model.PredictOptions{}))(t)[0]
		label, against := m.Config.Task.Classes[1], m.Config.Task.Classes[0]
		for _, test := range []struct{ flags, label, against string }{{"", answer.Text, ""}, {"--label=" + label + "|--against=" + against, label, against}} {
			flags := strings.FieldsFunc(test.flags, func(r rune) bool { return r == '|' })
			want := must.Get(m.Explain(text, test.label, test.against))(t)
			var got struct {
				Input, Answer, Label string
				Probability          float64
				Words                []model.Contribution
			}
			must.Do(t, json.Unmarshal([]byte(succeed(t, append([]string{"explain", dir, text, "--json"}, flags...)...)), &got))
			near := func(a, b model.Contribution) bool {
				return a.Word == b.Word && a.Start == b.Start && a.End == b.End && math.Abs(a.Value-b.Value) < 1e-5
			}
			if got.Input != text || got.Answer != answer.Text || got.Label != test.label || got.Probability == 0 || !slices.EqualFunc(got.Words, want, near) {
				t.Errorf("%s, %v: got %+v, want the words %v", dir, flags, got, want)
			}
			slices.SortStableFunc(want, func(a, b model.Contribution) int { return cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)) })
			printed := strings.Split(succeed(t, append([]string{"explain", dir, text, "--top=2"}, flags...)...), "\n")
			if len(printed) != 4 || !strings.HasPrefix(printed[0], quoted(test.label)+"\t0.") && !strings.HasPrefix(printed[0], quoted(test.label)+"\t1.") {
				t.Fatalf("heed explain prints %q, want the label %q and two words", printed, test.label)
			}
			if word := strings.ReplaceAll(want[0].Word, "\x1b", `\x1b`); printed[1] != fmt.Sprintf("%+.2f\t%s", want[0].Value, word) {
				t.Errorf("the first word is %q, want %+v", printed[1], want[0])
			}
		}
	}
	one := func(word string) string { return succeed(t, "explain", run, word, "--top=1") }
	prints(t, one("x")+"\n"+one("y"), "explain", run, "x", "y", "--top=1")
	withText(t, "x\n\ny\n")
	some := heed("explain", run, "--top=1")
	if some.code != 1 || some.stdout != one("x")+"\n"+one("y") {
		t.Errorf("an empty line between texts: status %d, %q", some.code, some.stdout)
	}
	must.Have(t, some.stderr, `heed: "": `, "1 text can't be explained")
	some = heed("explain", run, "", "y", "--json")
	if some.code != 2 || !strings.HasPrefix(some.stdout, `{"error":"task classification: the source is empty`) || !strings.Contains(some.stdout, `"label":"y"`) {
		t.Errorf("an empty argument: status %d, %s", some.code, some.stdout)
	}
	bart := publishedFolder(t, "bart-classes")
	must.Have(t, succeed(t, "attention", bart, "ab"), "decoder.blocks.0")
	must.Have(t, succeed(t, "eval", bart, "--data="+newFile(t, "bart.tsv", "text\tlabel\nab\tLABEL_0\n"), "--out="+filepath.Join(t.TempDir(), "page.html")), "Accuracy")
	for args, want := range map[string]string{
		"explain RUN a --label=z":   `the model has no label "z"`,
		"explain RUN a --against=z": `the model has no label "z"`,
		"explain RUN a --top=0":     "--top must be at least 1",
		"explain LLAMA a":           "only labels of whole texts are explained by words: use heed generate",
		"explain BART a":            "isn't explained by words: use heed attention",
		"explain STATES a":          "only labels of whole texts are explained by words: use heed embed",
	} {
		dirs := strings.NewReplacer("RUN", run, "BART", bart, "LLAMA", publishedFolder(t, "llama"), "STATES", publishedFolder(t, "llama-states"))
		rejected(t, heed(strings.Fields(dirs.Replace(args))...), 2, want)
	}
}
