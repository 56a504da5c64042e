package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// manyInputs returns inputs of all lengths, enough for several batches.
func manyInputs(t testing.TB, task *Task) []string {
	var inputs []string
	if rows, ok := task.set.(*rowSet); ok {
		for _, e := range rows.Train.Examples() {
			inputs = append(inputs, e.Source)
		}
		return inputs
	}
	if task.Config.Describe().Rows == nil {
		rng := rand.New(rand.NewPCG(3, 1))
		for range 150 {
			inputs = append(inputs, task.Config.Task.Sample(rng, task.Config.Task.MaxLen))
		}
		return inputs
	}
	const fox = "The quick brown fox jumps over the lazy dog"
	for from := range fox {
		for end := from + 1; end <= len(fox); end += 3 {
			if input := fox[from:end]; task.Config.Task.Kind == data.KindMaskedText {
				inputs = append(inputs, strings.Replace("o"+input[:min(len(input), 15)], "o", "[MASK]", 2))
			} else {
				inputs = append(inputs, input)
			}
		}
	}
	return inputs
}

// Other inputs must change the answer to an input only by rounding. Another order and another GOMAXPROCS must not
// change it at all. An input that the task doesn't allow must have an error in its own Answer.
func TestPredictAll(t *testing.T) {
	testseed.Slow(t)
	for name, c := range configs(t) {
		if testseed.LeftOut(t.Name() + name) {
			continue
		}
		if c.Describe().Predict != nil { // there are no answers
			continue
		}
		t.Run(name, func(t *testing.T) {
			task := fitted(t, c)
			inputs := manyInputs(t, task)
			inputs[7] = "\xff"
			o := PredictOptions{Top: 3}
			switch {
			case c.Task.Kind == data.KindSeq2Seq:
				o.Beam = 3
			case c.Task.Kind == data.KindRegression:
				o.Top = 0
			}
			answers, err := task.PredictAll(t.Context(), inputs, o)
			if err != nil || len(answers) != len(inputs) {
				t.Fatalf("got %d answers, %v", len(answers), err)
			}
			var wrong *InputError
			if a := answers[7]; !errors.As(a.Err, &wrong) || wrong.Input != "\xff" || a.Text != "" || a.LogProb != 0 {
				t.Errorf("an input that isn't UTF-8: got %+v", a)
			}
			for i := 0; i < len(inputs); i += 25 {
				alone, err := task.PredictAll(t.Context(), inputs[i:i+1], o)
				if err != nil || alone[0].Err != nil {
					t.Fatalf("%q: %+v, %v", inputs[i], alone, err)
				}
				if got, want := alone[0], answers[i]; got.Number != nil && math.Abs(*got.Number-*want.Number) > 1e-4 ||
					got.Number == nil && (got.Text != want.Text || !(math.Abs(got.LogProb-want.LogProb) <= 1e-5*-want.LogProb)) {
					t.Fatalf("%q: got %+v, %v without other inputs, %+v with them", inputs[i], alone, err, answers[i])
				}
			}
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
			order := rand.New(rand.NewPCG(5, 5)).Perm(len(inputs))
			mixed := make([]string, len(inputs))
			for i, j := range order {
				mixed[i] = inputs[j]
			}
			again := must.Get(task.PredictAll(t.Context(), mixed, o))(t)
			for i, j := range order {
				if j != 7 && !reflect.DeepEqual(again[i], answers[j]) {
					t.Fatalf("%q: got %+v, but %+v in another order and on 3 processors", inputs[j], answers[j], again[i])
				}
			}
		})
	}
}

// Top must not change an answer, except by a wider beam. The first alternative must be the answer. Alternatives must
// differ, and come in order. The probabilities of all classes must add up to 1.
func TestPredictTop(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, test := range []struct {
		name      string
		top, beam int
		least     int // mean number of alternatives; several sequences of targets may have the same text
		want      int // greatest number of alternatives
		all       bool
	}{
		{"brackets", 1, 0, 1, 1, false},
		{"brackets", 9, 0, 2, 2, true},
		{"text", math.MaxInt, 0, 32, 32, true},
		{"text", 5, 0, 5, 5, false},
		{"reverse", 20, 0, 2, 20, false},
		{"dates", 4, 4, 2, 4, false},
		{"dates", 2, 4, 1, 2, false},
		{"dates", 4, 0, 2, 4, false}, // the beam is 4 wide
	} {
		t.Run(fmt.Sprint(test.name, test.top, test.beam), func(t *testing.T) {
			t.Parallel()
			task := fitted(t, small(t, test.name))
			inputs := manyInputs(t, task)[:20]
			beam := test.beam
			if task.Config.Task.Kind == data.KindSeq2Seq {
				beam = max(beam, test.top)
			}
			plain := must.Get(task.PredictAll(t.Context(), inputs, PredictOptions{Beam: beam}))(t)
			answers := must.Get(task.PredictAll(t.Context(), inputs, PredictOptions{Beam: test.beam, Top: test.top}))(t)
			total := 0
			for i, a := range answers {
				if a.Text != plain[i].Text || a.LogProb != plain[i].LogProb || plain[i].Top != nil {
					t.Fatalf("%q: got %+v with Top, %+v without", inputs[i], a, plain[i])
				}
				total += len(a.Top)
				if len(a.Top) > test.want || a.Top[0] != (Alternative{Text: a.Text, LogProb: a.LogProb}) {
					t.Fatalf("%q: got %+v, want at most %d alternatives that begin with the answer", inputs[i], a, test.want)
				}
				sum, seen := 0.0, map[string]bool{}
				for j, other := range a.Top {
					if sum += math.Exp(other.LogProb); seen[other.Text] || j > 0 && other.LogProb > a.Top[j-1].LogProb {
						t.Errorf("%q: alternative %d of %+v isn't in order, or not the first with its Text", inputs[i], j, a.Top)
					}
					seen[other.Text] = true
				}
				if test.all && !(math.Abs(sum-1) < 1e-6) || !(sum < 1+1e-6) {
					t.Errorf("%q: the probabilities of %+v sum to %v", inputs[i], a.Top, sum)
				}
			}
			if total < len(inputs)*test.least {
				t.Errorf("got %d alternatives for %d inputs, want at least %d per input", total, len(inputs), test.least)
			}
		})
	}
}

// A text that is longer than the context must be answered like its beginning or, by a text model, like its end. The
// Answer must say so. Other kinds must refuse it, apart from tags: see TestLongTags.
func TestPredictCut(t *testing.T) {
	t.Parallel()
	c := forRows(t, data.KindClassification, someRows(data.KindClassification))
	c.Task.MaxLen, c.Data.SourceUnits = 2, tokenizer.Tokens
	for _, test := range []struct {
		c           Config
		whole, long string
		cut         bool
	}{
		{c, "a b", "a b x c", true},
		{small(t, "text"), " brown fox jumps", "quick brown fox jumps", true},
		{small(t, "dates"), "3 may 1999", strings.Repeat("3 may 1999", 9), false},
		{small(t, "brackets"), "()", strings.Repeat("()", 99), false},
	} {
		task := made(t, test.c)
		answers := must.Get(task.PredictAll(t.Context(), []string{test.whole, test.long}, PredictOptions{}))(t)
		whole, long := answers[0], answers[1]
		if whole.Cut || long.Cut != test.cut || task.Cuts(test.whole) || task.Cuts(test.long) != test.cut || (long.Err != nil) == test.cut {
			t.Errorf("%s: got %+v and %+v, want the second to be cut: %t", test.c.Task.Name, whole, long, test.cut)
		}
		if test.cut && (whole.Text != long.Text || whole.LogProb != long.LogProb) {
			t.Errorf("%s: got %+v, want the answer %+v", test.c.Task.Name, long, whole)
		}
	}
}

// In JSON, an Answer leaves out cut and unknown if they are false, and numbers that JSON can't represent.
func TestAnswerJSON(t *testing.T) {
	for _, test := range []struct {
		a    Answer
		want string
	}{
		{Answer{Input: "a\n", Text: "", LogProb: math.Log(0.5)}, `{"input":"a\n","answer":"","probability":0.5}`},
		{Answer{Input: "a", Text: "b", Cut: true, Unknown: true, Top: []Alternative{{Text: "b"}, {Text: "c", LogProb: math.Inf(-1)}}},
			`{"input":"a","answer":"b","probability":1,"cut":true,"unknown":true,"alternatives":[{"answer":"b","probability":1},{"answer":"c","probability":0}]}`},
		{Answer{Input: "a", Text: "b", LogProb: math.NaN(), Top: []Alternative{{Text: "b", LogProb: math.NaN()}}}, `{"input":"a","answer":"b","alternatives":[{"answer":"b"}]}`},
		{Answer{Input: "é b", Text: "O B", Spans: []Span{span("", 3, 4, "b")}}, `{"input":"é b","answer":"O B","probability":1,"spans":[{"label":"","start":3,"end":4,"text":"b"}]}`},
		{Answer{Input: "a", Text: "O", Spans: []Span{}}, `{"input":"a","answer":"O","probability":1,"spans":[]}`},
		{Answer{Input: "a", Unknown: true, Err: &InputError{Input: "a", Err: errors.New("too\nlong")}}, `{"input":"a","unknown":true,"error":"too long"}`},
	} {
		if got, err := json.Marshal(test.a); err != nil || string(got) != test.want {
			t.Errorf("got %s, %v, want %s", got, err, test.want)
		}
	}
}

// own is a user's Tokenizer, which fails for one text.
type own struct {
	tokenizer.Tokenizer
	fail func()
}

func (o own) Encode(text string) ([]int, error) {
	if text == "b e" {
		o.fail()
	}
	return o.Tokenizer.Encode(text)
}

// If a user's function panics on a goroutine of the model or the task, the call must panic on the caller's goroutine.
// If the function ends the goroutine, the call must return an error.
func TestPanicsArePassedOn(t *testing.T) {
	t.Parallel()
	measure := func(fail func()) error {
		known := must.Get(tokenizer.New(tokenizer.Tokens, slices.Values([]string{"a b c d e"}), 0))(t)
		c := forRows(t, data.KindClassification, someRows(data.KindClassification))
		c.Task.Classes, c.Task.Source, c.Data.SourceUnits = []string{"other", "vowel"}, own{known, fail}, tokenizer.Tokens
		_, err := New(c)
		return err
	}
	rule := func(fail func()) error {
		c := small(t, "reverse")
		samples, sample := 0, c.Task.Sample
		training := false
		c.Task.Sample = func(rng *rand.Rand, maxLen int) string {
			if samples++; training && samples > 2*c.Training.BatchSize {
				fail()
			}
			return sample(rng, maxLen)
		}
		task := made(t, c)
		training, samples = true, 0
		_, err := task.Train(t.Context(), filepath.Join(t.TempDir(), "run"), train.RunOptions{})
		return err
	}
	for name, call := range map[string]func(fail func()) error{"a tokenizer": measure, "a rule": rule} {
		t.Run(name, func(t *testing.T) {
			func() {
				defer func() {
					if x := recover(); !strings.Contains(fmt.Sprint(x), "no graph") || !strings.Contains(fmt.Sprint(x), "predict_test.go") {
						t.Errorf("got the panic %v, want one that says no graph and has the stack", x)
					}
				}()
				t.Errorf("got error %v, want a panic", call(func() { panic("no graph") }))
			}()
			if err := call(runtime.Goexit); err == nil || !strings.Contains(err.Error(), "runtime.Goexit") {
				t.Errorf("got error %v, want one about runtime.Goexit", err)
			}
		})
	}
}

// withTargets returns the batch of an answer's input, with the answer's targets. It reports false if the answer was
// cut.
func withTargets(t *testing.T, task *Task, a Answer) (data.Batch, bool) {
	t.Helper()
	_, target := task.Coder.Tokenizers()
	switch k := task.Config.Task.Kind; k {
	case data.KindText, data.KindMaskedText:
		b := must.Get(task.Coder.Batch([]data.Example{{Source: a.Input}}))(t)
		ids := must.Get(target.Encode(a.Text))(t)
		for i := range b.Targets {
			b.Targets[i] = data.Ignore
		}
		if k == data.KindText {
			b.Targets[b.Lengths[0]-1] = ids[0]
			return b, true
		}
		for i, id := range ids {
			if b.Inputs[i] == task.Coder.Layout().Pad { // the mask, which is also padding
				b.Targets[i] = id
			}
		}
		return b, true
	case data.KindTagging:
		b := must.Get(task.Coder.Batch([]data.Example{{Source: a.Input}}))(t)
		forward := must.Get(layers.NewFunction(func(build *layers.Build, g *G.ExprGraph) (inputs, out G.Nodes, err error) {
			inputs = task.Network.Inputs(g, 1, task.Coder.Layout())
			logits, err := task.Network.Forward(build, inputs)
			return inputs, G.Nodes{logits}, err
		}))(t)
		logits := must.Get(forward.Call(task.Network.Values(b)...))(t)[0].Float32s()
		for i := range b.Targets {
			if b.Targets[i] = data.Ignore; i < b.Lengths[0] {
				b.Targets[i], _ = logit.Likeliest(logits[i*len(logits)/len(b.Targets):][:len(logits)/len(b.Targets)])
			}
		}
		return b, true
	case data.KindSeq2Seq:
		if n, err := target.Encode(a.Text); err != nil || len(n) >= task.Coder.Layout().TargetLen-1 {
			return data.Batch{}, false
		}
	}
	return must.Get(task.Coder.Batch([]data.Example{{Source: a.Input, Answer: a.Text}}))(t), true
}

// lossOf returns the sum of the losses of a batch's targets.
func lossOf(t *testing.T, task *Task, b data.Batch) float64 {
	t.Helper()
	p := task.Problem()
	p.Validation = train.Dataset{Len: 1, Batch: func([]int) ([]*tensor.Dense, error) {
		return append(task.Network.Values(b), task.targets(b)...), nil
	}}
	return must.Get(train.Evaluate(t.Context(), p))(t)["val_loss"] * float64(b.Counted())
}

// The LogProb of an answer must agree with the cross-entropy loss of its targets.
func TestPredictLogProb(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for name, c := range configs(t) {
		if testseed.LeftOut(t.Name() + name) {
			continue
		}
		if slices.Contains([]data.Kind{data.KindRegression, data.KindMultiLabel, data.KindQA}, c.Task.Kind) || c.Describe().Predict != nil {
			continue // they have no probability, or not that of one list of targets
		}
		t.Run(name, func(t *testing.T) {
			task := fitted(t, c)
			answers := must.Get(task.PredictAll(t.Context(), manyInputs(t, task)[:20], PredictOptions{}))(t)
			for _, a := range answers {
				must.Do(t, a.Err)
				b, ok := withTargets(t, task, a)
				if !ok {
					continue
				}
				near := func(want float64) bool { return math.Abs(a.LogProb-want) <= 1e-4*(1+math.Abs(want)) }
				want := -lossOf(t, task, b)
				if end := slices.Index(append(slices.Clone(b.Targets), data.Ignore), data.Ignore) - 1; c.Task.Kind == data.KindSeq2Seq && !near(want) { // another special token may have ended the answer
					for _, b.Targets[end] = range []int{task.Coder.Layout().TargetPad, task.Coder.Layout().Start} {
						if other := -lossOf(t, task, b); near(other) {
							want = other
						}
					}
				}
				if !near(want) {
					t.Errorf("%q: the log probability of %q is %v, want %v by the loss", a.Input, a.Text, a.LogProb, want)
				}
			}
		})
	}
}

// A beam search must find likelier answers than greedy search.
func TestPredictBeam(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	task := fitted(t, small(t, "dates"))
	inputs := manyInputs(t, task)[:60]
	sums := map[int]float64{}
	for _, beam := range []int{0, 1, 4} {
		answers := must.Get(task.PredictAll(t.Context(), inputs, PredictOptions{Beam: beam}))(t)
		for i, a := range answers {
			sums[beam] += a.LogProb
			if text, err := task.Predict(inputs[i]); beam < 2 && (err != nil || a.Text != text) {
				t.Errorf("%q: with a beam of %d, got %q; Predict returns %q, %v", inputs[i], beam, a.Text, text, err)
			}
		}
	}
	if sums[0] != sums[1] || !(sums[4] > sums[1]+0.1) {
		t.Errorf("the sums of log probabilities by Beam are %v, want the same for 0 and 1, and a greater one for 4", sums)
	}
}

func TestPredictAllErrors(t *testing.T) {
	brackets, dates := made(t, small(t, "brackets")), made(t, small(t, "dates"))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		m    *Model
		o    PredictOptions
		want string
	}{
		"cancelled":               {done, dates.Model, PredictOptions{}, context.Canceled.Error()},
		"negative beam":           {t.Context(), dates.Model, PredictOptions{Beam: -1}, "beam must be from 1 to 1024, or 0 for 1, got -1"},
		"wide beam":               {t.Context(), dates.Model, PredictOptions{Beam: 1025}, "beam must be from 1 to 1024"},
		"negative top":            {t.Context(), brackets.Model, PredictOptions{Top: -1}, "top must be from 1 to 1024, or 0 for none, got -1"},
		"wide top":                {t.Context(), dates.Model, PredictOptions{Top: 1025}, "top must be from 1 to 1024"},
		"beam for classification": {t.Context(), brackets.Model, PredictOptions{Beam: 2}, "beam is for answers written symbol by symbol, not for the task brackets"},
	} {
		t.Run(name, func(t *testing.T) {
			answers, err := test.m.PredictAll(test.ctx, []string{"()"}, test.o)
			must.Fail(t, err, test.want)
			if answers != nil {
				t.Errorf("got the answers %v, want nil", answers)
			}
		})
	}
	if answers, err := dates.PredictAll(t.Context(), nil, PredictOptions{}); err != nil || len(answers) != 0 {
		t.Errorf("no inputs: got %v, %v, want no answers", answers, err)
	}
}

// If the context is cancelled during PredictAll, there must be no answers.
func TestPredictAllIsCancelled(t *testing.T) {
	task := made(t, small(t, "dates"))
	ctx, cancel := context.WithCancel(t.Context())
	ends := endsAfter{ctx, cancel, new(atomic.Int32)}
	if answers, err := task.PredictAll(ends, manyInputs(t, task), PredictOptions{}); !errors.Is(err, context.Canceled) || answers != nil {
		t.Errorf("got %d answers, %v, want none and context.Canceled", len(answers), err)
	}
}

// endsAfter is a context that is cancelled at the 150th call of Err, when PredictAll has encoded all inputs.
type endsAfter struct {
	context.Context
	cancel context.CancelFunc
	asked  *atomic.Int32
}

func (e endsAfter) Err() error {
	if e.asked.Add(1) == 150 {
		e.cancel()
	}
	return e.Context.Err()
}
