package pretrained

import (
	"flag"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

var saved = flag.String("saved", "", "write the folders that TestSave saves to this folder, for testdata/make.py --check")

// A reference is a case of testdata/make.py: a folder and what the reference library computes with it.
type reference struct {
	name string
	dir  string
	values
}

// values are the tensors of a safetensors file by name.
type values map[string]safetensors.Tensor

func readValues(t *testing.T, file string) values {
	t.Helper()
	list, _, err := safetensors.ReadFile(file)
	must.Do(t, err)
	v := values{}
	for _, x := range list {
		v[x.Name] = x
	}
	return v
}

func (v values) floats(name string) []float64 { return v[name].Data.([]float64) }

// ints returns a tensor as dtype tensor.Int, or nil if there is none.
func (v values) ints(name string) *tensor.Dense {
	x, ok := v[name]
	if !ok {
		return nil
	}
	var ints []int
	for _, n := range x.Data.([]int64) {
		ints = append(ints, int(n))
	}
	return tensor.New(tensor.WithShape(x.Shape...), tensor.WithBacking(ints))
}

// each calls do for every case.
func each(t *testing.T, do func(t *testing.T, r reference)) {
	files, err := filepath.Glob("testdata/*.safetensors")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d cases, error %v", len(files), err)
	}
	for _, file := range files {
		dir := strings.TrimSuffix(file, ".safetensors")
		t.Run(filepath.Base(dir), func(t *testing.T) { do(t, reference{filepath.Base(dir), dir, readValues(t, file)}) })
	}
}

// leaveOut skips the case of each, as testseed.LeftOut says, but not if its folder is to be saved.
func leaveOut(t *testing.T) {
	t.Helper()
	if *saved == "" && testseed.LeftOut(t.Name()) {
		t.Skip("left out with others: HEED_PROOFS=1 runs all architectures")
	}
}

func (r reference) open(t *testing.T, dtype tensor.Dtype) *Model {
	t.Helper()
	return must.Get(Open(r.dir, dtype))(t)
}

// A batch is a part of a case's inputs.
type batch struct{ ids, lengths, segments, answers *tensor.Dense }

func (r reference) batch() batch {
	return batch{r.ints("ids"), r.ints("lengths"), r.ints("segments"), r.ints("answers")}
}

const answerLen = 6 // of all answers of testdata/make.py

// only returns the sequence with the given index, without padding.
func (x batch) only(i int) batch {
	length := x.lengths.Ints()[i]
	cut := func(ids *tensor.Dense, length int) *tensor.Dense {
		if ids == nil {
			return nil
		}
		return tensor.New(tensor.WithShape(1, length), tensor.WithBacking(slices.Clone(ids.Ints()[i*ids.Shape()[1]:][:length])))
	}
	return batch{cut(x.ids, length), tensor.New(tensor.WithShape(1), tensor.WithBacking([]int{length})), cut(x.segments, length), cut(x.answers, answerLen)}
}

// forward adds the inputs and the model to a graph and returns its output.
func (m *Model) forward(t *testing.T, b *layers.Build, g *G.ExprGraph, x batch) *G.Node {
	t.Helper()
	input := func(name string, v *tensor.Dense) *G.Node {
		n := G.NewTensor(g, tensor.Int, v.Dims(), G.WithShape(v.Shape()...), G.WithName(name), G.WithValue(v))
		b.Fixed = append(b.Fixed, n)
		return n
	}
	ids, mask := input("ids", x.ids), layers.Mask{KeyLengths: input("lengths", x.lengths)}
	if x.segments != nil {
		b.Segments = input("segments", x.segments)
	}
	switch {
	case m.Decoder != nil:
		return must.Get(m.Decoder.Forward(b, ids, mask))(t)
	case m.Encoder != nil:
		return must.Get(m.Encoder.Forward(b, ids, mask))(t)
	case m.Sequence != nil:
		return must.Get(m.Sequence.Forward(b, ids, input("answers", x.answers), mask))(t)
	}
	return must.Get(m.Classifier.Forward(b, ids, mask))(t)
}

// run returns the model's output for a batch as float64. The outputs at padding are 0.
func (m *Model) run(t *testing.T, x batch, b *layers.Build) []float64 {
	t.Helper()
	g := G.NewGraph()
	var value G.Value
	out := m.forward(t, b, g, x)
	G.Read(out, &value)
	runAll(t, g)
	return m.withoutPadding(floats(value), x)
}

func runAll(t *testing.T, g *G.ExprGraph, options ...G.VMOpt) {
	t.Helper()
	must.Do(t, layers.CheckGraph(g))
	vm := G.NewTapeMachine(g, options...)
	defer vm.Close()
	must.Do(t, vm.RunAll())
}

func floats(v G.Value) (x []float64) {
	switch data := v.Data().(type) {
	case []float64:
		return slices.Clone(data)
	case []float32:
		for _, y := range data {
			x = append(x, float64(y))
		}
	case float64:
		x = []float64{data}
	}
	return x
}

func (m *Model) withoutPadding(out []float64, x batch) []float64 {
	if m.Classifier != nil || m.Sequence != nil {
		return out
	}
	s := x.ids.Shape()
	width := len(out) / s.TotalSize()
	for i, length := range x.lengths.Ints() {
		clear(out[(i*s[1]+length)*width : (i+1)*s[1]*width])
	}
	return out
}

// compare checks that the largest error, relative to the largest value or to least, is at most the limit.
func compare(t *testing.T, what string, got, want []float64, limit, least float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", what, len(got), len(want))
		return
	}
	largest, worst := least, 0.0
	for i := range want {
		largest, worst = max(largest, math.Abs(want[i])), max(worst, math.Abs(got[i]-want[i]))
	}
	if !(worst <= limit*largest) {
		t.Errorf("%s: relative error %.3g, want at most %.3g", what, worst/largest, limit)
	}
}

// TestLogits compares the outputs for a padded batch with the reference library's, also without fused ops and in
// float32. Sequences alone, without padding, must have the same outputs.
func TestLogits(t *testing.T) {
	each(t, func(t *testing.T, r reference) {
		if testing.Short() {
			leaveOut(t)
		}
		want, x := r.floats("logits"), r.batch()
		single, double := r.open(t, tensor.Float32), r.open(t, tensor.Float64)
		compare(t, "float64", double.run(t, x, &layers.Build{}), want, 1e-9, 0)
		compare(t, "composed", double.run(t, x, &layers.Build{Composed: true}), want, 1e-9, 0)
		compare(t, "float32", single.run(t, x, &layers.Build{}), want, 1e-5, 0)
		row := len(want) / x.ids.Shape()[0]
		for i := range x.lengths.Ints() {
			alone := double.run(t, x.only(i), &layers.Build{})
			compare(t, "alone", alone, want[i*row:][:len(alone)], 1e-9, 0)
		}
	})
}

// TestGradients compares the loss and its gradients for all parameters with the reference library's. The table of names
// maps our gradients to the published tensors.
func TestGradients(t *testing.T) {
	testseed.Slow(t)
	each(t, func(t *testing.T, r reference) {
		m := r.open(t, tensor.Float64)
		r.compareGradients(t, m, &layers.Build{}, r.values, m.Params, must.Get(m.tensors(m.Params))(t))
	})
}

// compareGradients compares the loss and its gradients for all parameters of a model or of its adapter with the
// expected values. It replaces the parameters by their gradients.
func (r reference) compareGradients(t *testing.T, m *Model, b *layers.Build, expected values, p *layers.Params, tensors []layers.Tensor) {
	t.Helper()
	g, x, targets := G.NewGraph(), r.batch(), r.ints("targets")
	out := m.forward(t, b, g, x)
	if m.Classifier == nil && m.Sequence == nil {
		for i, length := range x.lengths.Ints() {
			for j := length; j < x.ids.Shape()[1]; j++ {
				targets.Ints()[i*x.ids.Shape()[1]+j] = layers.Ignore
			}
		}
	}
	var loss layers.Loss
	if m.Several {
		var doubles []float64
		for _, x := range targets.Ints() {
			doubles = append(doubles, float64(x))
		}
		values := tensor.New(tensor.WithShape(targets.Shape()...), tensor.WithBacking(doubles))
		loss = must.Get(layers.BinaryCrossEntropy(b, out, G.NewMatrix(g, tensor.Float64, G.WithName("targets"), G.WithValue(values)), nil))(t)
	} else {
		node := G.NewTensor(g, tensor.Int, targets.Dims(), G.WithShape(targets.Shape()...), G.WithName("targets"), G.WithValue(targets))
		loss = must.Get(layers.CrossEntropy(b, out, node, layers.CrossEntropyOptions{}))(t)
	}
	var value G.Value
	G.Read(loss.Mean, &value)
	must.Get(G.Grad(loss.Mean, b.Learnables()...))(t)
	runAll(t, g, G.BindDualValues(b.Learnables()...))
	compare(t, "loss", floats(value), expected.floats("loss"), 1e-9, 0)

	for i := range tensors { // d/dx of x + Plus
		tensors[i].Plus = 0
	}
	for _, q := range p.All() {
		clear(q.Value.Float64s())
	}
	for _, n := range b.Learnables() {
		copy(p.Get(n.Name()).Value.Float64s(), floats(must.Get(n.Grad())(t)))
	}
	file := filepath.Join(t.TempDir(), "gradients")
	must.Do(t, p.SaveTensors(file, tensors, nil))
	got, seen := readValues(t, file), map[string]bool{}
	for _, x := range tensors {
		want := make([]float64, len(got.floats(x.Names[0])))
		for _, name := range x.Names {
			if _, ok := expected["grad."+name]; ok {
				want, seen[name] = expected.floats("grad."+name), true
			}
		}
		compare(t, x.Names[0], got.floats(x.Names[0]), want, 1e-9, 1e-6)
	}
	for name := range expected {
		if name, ok := strings.CutPrefix(name, "grad."); ok && !seen[name] {
			t.Errorf("there is no gradient for %s", name)
		}
	}
}

// TestCache checks that a text that grows token by token has the logits of the whole text.
func TestCache(t *testing.T) {
	each(t, func(t *testing.T, r reference) {
		m, x := r.open(t, tensor.Float64), r.batch()
		if m.Sequence != nil {
			r.compareAnswers(t, m, x)
			return
		}
		if m.Decoder == nil {
			t.Skip("not for text")
		}
		want, s := r.floats("logits"), x.ids.Shape()
		session := must.Get(decode.New(m.Decoder, decode.Config{Batch: s[0], Capacity: s[1]}))(t)
		defer session.Close()
		vocab := m.Model.Vocab
		for position := 0; position < s[1]; position++ {
			count := 1
			if position == 0 {
				count = 3 // the first tokens together, as a prompt
			}
			rows := make([][]int, s[0])
			for i, length := range x.lengths.Ints() {
				if position+count <= length {
					rows[i] = x.ids.Ints()[i*s[1]+position:][:count]
				}
			}
			position += count - 1
			for i, row := range must.Get(session.Step(rows))(t) {
				if row != nil {
					compare(t, "cached", row, want[(i*s[1]+position)*vocab:][:vocab], 1e-9, 0)
				}
			}
		}
	})
}

// compareAnswers checks that answers that grow token by token, with the sources' keys and values in the cache, have the
// logits of whole answers. Two of the sequences that a search follows have the same source.
func (r reference) compareAnswers(t *testing.T, m *Model, x batch) {
	t.Helper()
	sources, s := make([][]int, x.ids.Shape()[0]), x.ids.Shape()
	for i, length := range x.lengths.Ints() {
		sources[i] = x.ids.Ints()[i*s[1]:][:length]
	}
	session := must.Get(decode.NewSeq2Seq(m.Sequence, decode.Seq2SeqConfig{Sources: s[0], Width: 2, SourceLen: s[1], Capacity: answerLen}))(t)
	defer session.Close()
	must.Do(t, session.Read(sources))
	want := r.floats("logits")
	vocab := len(want) / len(x.answers.Ints())
	for position := 0; position < answerLen; position++ {
		rows := make([][]int, 2*s[0])
		for i := range rows {
			rows[i] = x.answers.Ints()[i/2*answerLen+position:][:1]
		}
		for i, row := range must.Get(session.Step(rows))(t) {
			compare(t, "cached", row, want[(i/2*answerLen+position)*vocab:][:vocab], 1e-9, 0)
		}
	}
}

// TestSave checks that a saved model opens with the same bits and the same configuration.
func TestSave(t *testing.T) {
	testseed.Slow(t)
	each(t, func(t *testing.T, r reference) {
		leaveOut(t)
		m := r.open(t, tensor.Float64)
		dir := filepath.Join(t.TempDir(), r.name)
		if *saved != "" {
			dir = filepath.Join(*saved, r.name)
		}
		must.Do(t, Save(dir, m.Config, m.Params))
		again := must.Get(Open(dir, tensor.Float64))(t)
		for i, q := range m.Params.All() {
			p := again.Params.All()[i]
			if p.Name != q.Name || !slices.Equal(p.Value.Float64s(), q.Value.Float64s()) {
				t.Errorf("%s differs after Save and Open", q.Name)
			}
		}
		c := m.Config
		c.Type = "" // the first architecture with these settings, which needn't be the same
		wantError(t, "without a Type", Save(filepath.Join(t.TempDir(), "chosen"), c, m.Params), "")
		if !slices.Equal(m.run(t, r.batch(), &layers.Build{}), again.run(t, r.batch(), &layers.Build{})) {
			t.Error("the outputs differ after Save and Open")
		}
		if m.MaxLen != again.MaxLen || !slices.Equal(m.End, again.End) || m.Start != again.Start || m.Pad != again.Pad || !slices.Equal(m.Labels, again.Labels) || m.Several != again.Several {
			t.Errorf("saved %+v, opened %+v", m.Config, again.Config)
		}
		if len(again.Ignored) > 0 {
			t.Errorf("ignored %v", again.Ignored)
		}
	})
}

// TestIgnored checks that tensors without a parameter are listed: masks that old folders of GPT-2 have, a copy of the
// tied head, and the parts of BERT that a head doesn't use.
func TestIgnored(t *testing.T) {
	for name, want := range map[string][]string{
		"gpt2":        {"h.0.attn.bias", "h.0.attn.masked_bias", "lm_head.weight"},
		"bert":        {"bert.embeddings.position_ids", "cls.seq_relationship.bias", "cls.seq_relationship.weight"},
		"bert-states": {"pooler.dense.bias", "pooler.dense.weight"},
	} {
		m := must.Get(Open("testdata/"+name, tensor.Float32))(t)
		if slices.Sort(m.Ignored); !slices.Equal(m.Ignored, want) {
			t.Errorf("%s: ignored %q, want %q", name, m.Ignored, want)
		}
	}
}
