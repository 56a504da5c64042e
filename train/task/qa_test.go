package task

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// questionRows returns rows of TSV whose answer is the word after red or blue, or none where the colour is missing.
// Some contexts are longer than a window of 64.
func questionRows(n int) string {
	var s strings.Builder
	s.WriteString("question\tcontext\tanswer\n")
	for i := range n {
		more := strings.Repeat("so on ", i%7*6)
		red, blue := fmt.Sprint("cat", i%5), fmt.Sprint("dog", i%4)
		switch i % 4 {
		case 0:
			fmt.Fprintf(&s, "where is red?\t%d %s red %s, blue %s.\t%s\n", i, more, red, blue, red)
		case 1, 2:
			fmt.Fprintf(&s, "where is blue?\t%d %s red %s, blue %s.\t%s\n", i, more, red, blue, blue)
		default:
			fmt.Fprintf(&s, "where is red?\t%d %s only blue %s.\t\n", i, more, blue)
		}
	}
	return s.String()
}

// A model learns answers, and that some contexts have none, from rows that are partly longer than its windows.
func TestQuestions(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	c := withFile(t, "qa", "rows.tsv", questionRows(400))
	c.Task.MaxLen, c.Training.MaxEpochs, c.Training.Optimizer.LearningRate = 64, 14, 5e-3
	task, dir := trained(t, c)
	if task.Config.Data.SourceUnits != tokenizer.Words || !task.Config.Task.Unanswered || !strings.Contains(task.DescribeData(), "  windows: ") || !strings.Contains(task.DescribeData(), "  no answer: ") {
		t.Errorf("the units are %s, of\n%s", task.Config.Data.SourceUnits, task.DescribeData())
	}
	s := must.Get(ReadRun(dir))(t).Summary
	if s.ScoreName != "exact_match" || *s.ValScore < 0.9 {
		t.Errorf("the score is %s %v, want exact_match of at least 0.9", s.ScoreName, *s.ValScore)
	}
	m := must.Get(Open(dir))(t)
	context := strings.Repeat("so on ", 50) + "red é cat3, blue dog1."
	tabs := "so on\tred\tcat3, blue dog1."
	answered := must.Get(m.PredictAll(t.Context(), []string{"where is blue?\t" + tabs}, PredictOptions{}))(t)[0]
	if answered.Err != nil || tabs[answered.Part.Start:answered.Part.End] != answered.Text {
		t.Errorf("a context with tabs: got %+v", answered)
	}
	file := filepath.Join(t.TempDir(), "tabs.jsonl")
	write(t, file, fmt.Sprintf("{\"question\": \"where is blue?\", \"context\": %q}\n", tabs))
	must.Do(t, PredictFile(t.Context(), m, file, io.Discard, PredictOptions{}, nil, func(_ int, a Answer) []any {
		if a.Err != nil || a.Text != answered.Text || *a.Part != *answered.Part {
			t.Errorf("a row with tabs: got %+v, want %+v", a, answered)
		}
		return nil
	}))
	inputs := []string{"where is blue?\t" + context, "where is red?\t603 " + strings.Repeat("so on ", 6) + " only blue dog3."}
	answers := must.Get(m.PredictAll(t.Context(), inputs, PredictOptions{Top: 3}))(t)
	if a := answers[0]; a.Text != "dog1" || context[a.Part.Start:a.Part.End] != "dog1" || a.Cut || m.Cuts(inputs[0]) || len(a.Top) != 3 {
		t.Errorf("got %+v, want dog1", a)
	}
	if a := answers[1]; a.Text != "" || a.Part.End != 0 {
		t.Errorf("got %+v, want no answer", a)
	}
	r := judged(t, task, task.Examples(), PredictOptions{})
	if text := r.String(); r.Extracts.ExactMatch() != *s.ValScore || !strings.Contains(text, "Exact match: ") || !strings.Contains(text, "F1: ") || !strings.Contains(text, "Without an answer: ") {
		t.Errorf("got %s, want the exact match %v", text, *s.ValScore)
	}
	must.Refuse(m.Predict("where is blue?"))(t, "a question and a context with a tab between them")
}

// Rows may say where answers begin, in characters, and may have several or none.
func TestReadAnswers(t *testing.T) {
	for name, test := range map[string]struct{ file, content, answer, bad string }{
		"first":      {"a.csv", "question,context,answer\nq,é a a,a\n", "a\t", ""},
		"start":      {"a.csv", "id,question,context,answer,answer_start\n1,q,é a a, a,3\n", "a\t5", ""},
		"no start":   {"a.csv", "question,context,answer,answer_start\nq,é a,a,\n", "a\t", ""},
		"none":       {"a.tsv", "question\tcontext\tanswer\nq\té a\t\n", "\t", ""},
		"squad":      {"a.jsonl", `{"question": "q", "context": "é a b", "answers": {"text": ["a", "a b"], "answer_start": [2, 2]}}` + "\n", "a\t3\ta b\t3", ""},
		"impossible": {"a.jsonl", `{"question": "q", "context": "é a b", "answers": {"text": [], "answer_start": []}}` + "\n", "\t", ""},
		"float":      {"a.csv", "question,context,answer,answer_start\nq,é a a,a,4.0\n", "a\t5", ""},
		"article": {"a.json", "{\"version\": \"v2.0\",\n\"data\": [{\"title\": \"t\", \"paragraphs\": [{\"context\": \"é a b\", \"qas\": [\n" +
			`{"question": "q", "id": "1", "is_impossible": false, "answers": [{"text": "a", "answer_start": 2}, {"text": "a b", "answer_start": 2}]}]}]}], "x": 1}`, "a\t3\ta b\t3", ""},
		"paragraph": {"a.jsonl", `{"question": "q", "context": "é a b", "answers": []}` + "\n", "\t", ""},
		"a list":    {"a.csv", "question,context,answer\nq,[x] y,[x]\n", "[x]\t", ""},
		"tabs":      {"a.jsonl", `{"question": "q", "context": "é a\tb", "answers": {"text": ["a\tb", "a b"], "answer_start": [2, 2]}}` + "\n", "a b\t3\ta b\t3", ""},
		"no starts": {"a.jsonl", `{"question": "q", "context": "a", "answers": {"text": ["a"], "answer_start": []}}` + "\n", "", "there are 1 answers, but 0 first characters"},
		"braces":    {"a.csv", "question,context,answer\nq,{x} y,{x}\n", "{x}\t", ""},
		"elsewhere": {"a.csv", "question,context,answer,answer_start\nq,é a a,a,4\n", "a\t5", ""},
		"absent":    {"a.csv", "question,context,answer\nq,c,x\n", "", `the answer "x" isn't in the context`},
		"wrong":     {"a.csv", "question,context,answer,answer_start\nq,é a a,a,3\n", "", `the answer "a" isn't in the context at character 3`},
		"beyond":    {"a.csv", "question,context,answer,answer_start\nq,c,c,99\n", "", "isn't in the context at character 99"},
		"word":      {"a.csv", "question,context,answer,answer_start\nq,c,c,x\n", "", `must be a whole number, got "x"`},
		"uneven":    {"a.jsonl", `{"question": "q", "context": "a", "answers": {"text": ["a"], "answer_start": [0, 0]}}` + "\n", "", "there are 1 answers, but 2 first characters"},
	} {
		t.Run(name, func(t *testing.T) {
			c := withFile(t, "qa", test.file, test.content)
			k := kindOf(data.KindQA)
			k.look(&c, c.Data.File)
			table, err := c.format(k).Read(&c.Data, 0, c.Data.File, "")
			if test.bad != "" {
				must.Fail(t, err, test.bad)
				return
			}
			if err != nil || table.Field(0, 1) != test.answer {
				t.Errorf("got %v, %v, want %q", table, err, test.answer)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "x.tsv")
	write(t, file, strings.Repeat("q\ta b a\ta\nq\ta b\tb\nq2\tb a\ta\n", 10))
	c := must.Get(Named("qa", 0))(t)
	c.Data.File, c.Data.Header = file, "no"
	if text := made(t, c).DescribeData(); !strings.Contains(text, "answers: 10 answers are in several places of their contexts, and the first is learned") {
		t.Errorf("got %s", text)
	}
}

// The loss is the mean of both cross-entropies over the tokens of a row, whatever the padding has.
func TestSpanLoss(t *testing.T) {
	b := data.Batch{Inputs: make([]int, 6), Lengths: []int{3, 2}, Targets: []int{1, 2, 0, 0}, Size: 2, Len: 3, TargetLen: 2}
	logits := []float64{0, 1, 2, 3, 4, 6 /**/, 1, 0.5, -1, 2, 99, 77}
	want := 0.0
	for row, n := range b.Lengths {
		for side := range 2 {
			sum := 0.0
			for i := range n {
				sum += math.Exp(logits[row*6+2*i+side])
			}
			want += math.Log(sum) - logits[row*6+2*b.Targets[2*row+side]+side]
		}
	}
	values := make([]float32, len(logits))
	for i, x := range logits {
		values[i] = float32(x)
	}
	f := must.Get(layers.NewFunction(func(build *layers.Build, g *G.ExprGraph) (inputs, outs G.Nodes, err error) {
		out := G.NewTensor(g, G.Float32, 3, G.WithShape(2, 3, 2), G.WithName("out"))
		targets, padding := ops.IntNode(g, "targets", 2, 2), G.NewTensor(g, G.Float32, 3, G.WithShape(2, 3, 2), G.WithName("padding"))
		loss, _, err := spanLearner{}.loss(build, out, G.Nodes{targets, padding})
		return G.Nodes{out, targets, padding}, G.Nodes{loss.Mean}, err
	}))(t)
	out := tensor.New(tensor.WithShape(2, 3, 2), tensor.WithBacking(values))
	got := must.Get(f.Call(append([]*tensor.Dense{out}, spanLearner{}.targets(b)...)...))(t)[0].Data().(float32)
	if math.Abs(float64(got)-want/4) > 1e-5 {
		t.Errorf("the loss is %g, want %g", got, want/4)
	}
}
