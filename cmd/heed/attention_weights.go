package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/layers"
)

// The most attention weights that are computed, and that are shown: a long input to a large model has more than memory
// holds, or than anybody looks at.
const (
	maxComputed = 1 << 26
	maxShown    = 1 << 20
)

// A reading is one input as a model takes it, without padding, with the labels of its tokens.
type reading struct {
	inputs []input // of the graph
	ids    [][]int // of each input
	marks  *marks
	self   string // says whom the source's positions attend to among themselves

	source  []string // what the model reads
	read    []string // what its decoder reads at each step, if it is an encoder–decoder: the start, then what it has written
	written []string // what its decoder writes at each step, but the last, which the model has yet to tell
}

// attention is what the model attends to while it answers an input, in the layers whose name has layer in it.
func (e *experiment) attention(typed, layer string) (heatmap.Figure, error) {
	answer, err := e.predict(typed) // which checks the input
	if err != nil {
		return heatmap.Figure{}, fmt.Errorf("%q: %w", typed, err)
	}
	r, err := e.reading(typed, answer)
	if err != nil {
		return heatmap.Figure{}, err
	}
	captured, classes, err := e.capture(r, layer)
	if err != nil {
		return heatmap.Figure{}, err
	}
	if r.read != nil {
		r.written = append(r.written, r.marks.label(classes[len(classes)-1]))
	}
	f := heatmap.Figure{Title: fmt.Sprintf("%s: %s → %s", e.Task, shortened(typed), shortened(answer))}
	for _, c := range captured {
		l := heatmap.Layer{Heading: c.name + ": " + r.self, Rows: r.source, Columns: r.source}
		switch {
		case strings.HasSuffix(c.name, ".cross"):
			l.Heading = c.name + ": what it writes (rows) attends to the source (columns)"
			l.Rows = r.written
		case r.read != nil && strings.HasPrefix(c.name, "decoder."):
			l.Heading = c.name + ": what it writes (rows) attends to what it has written before (columns)"
			l.Rows, l.Columns = r.written, r.read
		}
		for weights := range slices.Chunk(c.weights, len(l.Rows)*len(l.Columns)) {
			l.Heads = append(l.Heads, heatmap.Head{Title: fmt.Sprintf("head %d", len(l.Heads)), Weights: weights})
		}
		f.Layers = append(f.Layers, l)
	}
	f.Key = r.marks.key(f.Layers)
	return f, nil
}

// reading makes the model's inputs of one that it has answered.
func (e *experiment) reading(typed, answer string) (*reading, error) {
	switch e.Task {
	case textTask:
		return e.readText(typed)
	case datesTask:
		return e.readPair(typed, answer)
	}
	return e.readLabels(typed)
}

func (e *experiment) readLabels(source string) (*reading, error) {
	task, err := data.Named(e.Task, e.MaxLen)
	if err != nil {
		return nil, err
	}
	labeler, err := data.NewLabeler(task)
	if err != nil {
		return nil, err
	}
	b, err := labeler.Batch([]string{source}, 1)
	if err != nil {
		return nil, err
	}
	ids := b.Inputs[:b.Lengths[0]]
	m := newMarks(labeler.Vocab(), map[int]mark{labeler.End(): {"■", "the end"}})
	return &reading{
		inputs: []input{{"ids", len(ids)}, {"lengths", 0}}, ids: [][]int{ids, b.Lengths},
		marks: m, self: "each position (rows) attends to all of the source (columns)", source: m.labels(ids),
	}, nil
}

func (e *experiment) readPair(source, answer string) (*reading, error) {
	task, err := data.Named(e.Task, e.MaxLen)
	if err != nil {
		return nil, err
	}
	tr, err := data.NewTranslator(task)
	if err != nil {
		return nil, err
	}
	b, err := tr.Batch([]string{source}, 1)
	if err != nil {
		return nil, err
	}
	written, err := tr.Vocab().Encode(answer)
	if err != nil {
		return nil, err
	}
	written = written[:min(len(written), tr.TargetLen()-1)] // the last token is never read
	ids, read := b.Sources[:b.Lengths[0]], append([]int{tr.Start()}, written...)
	m := newMarks(tr.Vocab(), map[int]mark{tr.Start(): {"►", "the start"}, tr.End(): {"■", "the end"}, tr.Pad(): {"○", "padding"}})
	return &reading{
		inputs: []input{{"source", len(ids)}, {"lengths", 0}, {"answer", len(read)}}, ids: [][]int{ids, b.Lengths, read},
		marks: m, self: "each position of the source (rows) attends to all of it (columns)",
		source: m.labels(ids), read: m.labels(read), written: m.labels(written),
	}, nil
}

func (e *experiment) readText(typed string) (*reading, error) {
	vocab, err := data.NewVocab(e.Chars)
	if err != nil {
		return nil, err
	}
	ids, err := vocab.Encode(typed)
	if err != nil {
		return nil, err
	}
	ids = ids[max(0, len(ids)-e.MaxLen):] // as predict does
	m := newMarks(vocab, nil)
	return &reading{
		inputs: []input{{"ids", len(ids)}}, ids: [][]int{ids},
		marks: m, self: "each character (rows) attends to itself and to those before it (columns)", source: m.labels(ids),
	}, nil
}

// captured is the attention weights of a layer, (1, H, T, S), row-major.
type captured struct {
	name    string
	weights []float32
}

// capture runs the model. It returns the attention weights of the layers whose name has layer in it, those of
// cross-attention first, and the likeliest class of every position.
func (e *experiment) capture(r *reading, layer string) ([]captured, []int, error) {
	g := G.NewGraph()
	var nodes G.Nodes
	for _, in := range r.inputs {
		nodes = append(nodes, in.node(g, 1))
	}
	b := &layers.Build{CaptureWeights: true}
	out, err := e.logits(b, nodes)
	if err != nil {
		return nil, nil, err
	}
	chosen, err := choose(b.Captured(), layer)
	if err != nil {
		return nil, nil, err
	}
	var logits G.Value
	G.Read(out, &logits)
	values := make([]G.Value, len(chosen))
	for i, c := range chosen {
		G.Read(c.Weights, &values[i])
	}
	for i, in := range r.inputs {
		if err := G.Let(nodes[i], in.value(r.ids[i], 1)); err != nil {
			return nil, nil, err
		}
	}
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		return nil, nil, err
	}
	weights := make([]captured, len(chosen))
	for i, c := range chosen {
		weights[i] = captured{c.Layer, slices.Clone(values[i].Data().([]float32))}
	}
	return weights, argmax(logits), nil
}

// choose is the layers whose name has layer in it, those of cross-attention first. It is an error if there is none, or
// if their weights are too many.
func choose(all []layers.Captured, layer string) ([]layers.Captured, error) {
	var names []string
	var cross, others []layers.Captured
	computed, shown := 0, 0
	for _, c := range all {
		names = append(names, c.Layer)
		size := c.Weights.Shape().TotalSize()
		computed += size
		if !strings.Contains(c.Layer, layer) {
			continue
		}
		shown += size
		if strings.HasSuffix(c.Layer, ".cross") {
			cross = append(cross, c)
		} else {
			others = append(others, c)
		}
	}
	switch {
	case shown == 0:
		return nil, usagef("--layer must be part of a layer's name, got %q; the layers are %s", layer, strings.Join(names, ", "))
	case computed > maxComputed:
		return nil, usagef("the model has %d attention weights for this input, at most %d are computed: give a shorter input", computed, maxComputed)
	case shown > maxShown:
		return nil, usagef("there are %d attention weights to show, at most %d are: give a shorter input, or choose a layer with --layer", shown, maxShown)
	}
	return append(cross, others...), nil
}

// A mark stands for a token that can't be seen.
type mark struct{ mark, meaning string }

// marks labels tokens: a symbol as it is, any other as a mark. It remembers the marks that it used.
type marks struct {
	symbols []rune       // by id
	special map[int]mark // by id: what are no symbols
	used    []mark
}

func newMarks(vocab *data.Vocab, special map[int]mark) *marks {
	return &marks{symbols: []rune(vocab.Symbols()), special: special}
}

func (m *marks) labels(ids []int) []string {
	labels := make([]string, len(ids))
	for i, id := range ids {
		labels[i] = m.label(id)
	}
	return labels
}

func (m *marks) label(id int) string {
	mark, marked := m.special[id]
	if !marked {
		r := m.symbols[id]
		switch {
		case r == ' ':
			mark = m.unlikeSymbols("·▫", "a space")
		case r == '\n':
			mark = m.unlikeSymbols("¶◊", "a new line")
		case r == '\t':
			mark = m.unlikeSymbols("→►", "a tab")
		case unicode.In(r, unicode.Mn, unicode.Me):
			return "◌" + string(r)
		case !unicode.IsPrint(r):
			mark = m.unlikeSymbols("¤■", "a character that can't be printed")
		default:
			return string(r)
		}
	}
	if !slices.Contains(m.used, mark) {
		m.used = append(m.used, mark)
	}
	return mark.mark
}

// unlikeSymbols is a mark: the first of some characters that is no symbol itself, or else the last.
func (m *marks) unlikeSymbols(characters, meaning string) mark {
	var c rune
	for _, c = range characters {
		if !slices.Contains(m.symbols, c) {
			break
		}
	}
	return mark{string(c), meaning}
}

// key says what the marks among the labels of some layers stand for.
func (m *marks) key(in []heatmap.Layer) string {
	var parts []string
	for _, u := range m.used {
		if slices.ContainsFunc(in, func(l heatmap.Layer) bool {
			return slices.Contains(l.Rows, u.mark) || slices.Contains(l.Columns, u.mark)
		}) {
			parts = append(parts, u.mark+" "+u.meaning)
		}
	}
	return strings.Join(parts, ", ")
}

// shortened is a text as a title has it: the end of a long one, quoted.
func shortened(s string) string {
	const most = 60
	if n := utf8.RuneCountInString(s); n > most {
		s = "…" + string([]rune(s)[n-most:])
	}
	return quoted(s)
}

// quoted is a text in quotes, where it couldn't be told without.
func quoted(s string) string {
	if strings.TrimSpace(s) != s || s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
