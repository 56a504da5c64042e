package model

import (
	"cmp"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// A classifier is a network that chooses among the ids of the Layout's Classes, once or at every position. Its output
// has their logits.
type classifier struct {
	reader

	// If trunk isn't nil, States is the result of below, and the trunk has a head that makes logits of it.
	trunk *layers.Trunk
	below func(b *layers.Build, inputs G.Nodes) (*G.Node, error)
}

func (c classifier) Trunk() *layers.Trunk { return c.trunk }

// newClassifier returns the classifier of a model whose function net computes logits.
func newClassifier(m *Model, net func(b *layers.Build, inputs G.Nodes) (*G.Node, error)) classifier {
	return classifier{reader: reader{m, net}}
}

// labelHead gives each source one label.
type labelHead struct{ pooledHead }

func (labelHead) about() facts {
	return facts{kind: data.KindClassification, use: "predict", rows: true, pairs: true, linear: true, top: unlimited, units: "characters, tokens, words, bpe"}
}

func (labelHead) published(m *pretrained.Config, r *data.Rule) bool {
	r.About, r.Classes = "the label of a text", m.Labels
	return m.Head == "classes"
}

func (labelHead) describe(c *Config, d *Description) {
	if !c.Spelled {
		d.Explain = nil
	}
	if (c.Opened() || c.Task.Pairs) && len(c.Task.Classes) > 1 && entailment(c.Task.Classes) >= 0 {
		d.Labels = nil
	}
}

func (labelHead) network(m *Model) (network, error) {
	net, err := pooled(m) // (B, Classes)
	return newClassifier(m, net), err
}

func (c classifier) States(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
	r := c.reader
	if c.trunk != nil {
		r.net = c.below
	}
	return r.Forward(b, inputs)
}

func (c classifier) answer(chosen choice, a *Answer) (err error) {
	a.Text, err = c.Coder.Answer(chosen.targets)
	return err
}

// predictor returns a predictor that chooses the likeliest classes of all valid positions together. For text, it
// chooses only the class that follows the last position.
func (c classifier) predictor(s batchShape) (predictor, error) {
	classes := c.layout.Classes
	return c.chooser(c, s, func(logits []float32, q *query) {
		first, end := 0, min(len(logits)/classes, len(q.ids))
		if c.Config.about().causal {
			first = end - 1
		}
		for p := first; p < end; p++ {
			if q.targets == nil || q.targets[p] != data.Ignore {
				q.output = append(q.output, logits[p*classes:][:classes]...)
			}
		}
		if !q.keep {
			q.choices, q.output = c.mixed(*q, q.mixture), nil
		}
	})
}

func (c classifier) mixed(q query, x logit.Mixture) []choice {
	choices := []choice{{}}
	for logits := range slices.Chunk(x.Logits(q.output, q.linear, c.layout.Classes), c.layout.Classes) {
		choices = extended(choices, logits, q.top)
	}
	return choices
}

// extended returns the n likeliest choices with one more target, given its logits. The choices must be likeliest first.
func extended(choices []choice, logits []float32, n int) []choice {
	best, logProb := logit.Likeliest(logits)
	if n <= 1 {
		choices[0].targets = append(choices[0].targets, best)
		choices[0].logProb += logProb
		return choices
	}
	classes := make([]int, len(logits))
	for i := range classes {
		classes[i] = i
	}
	slices.SortStableFunc(classes, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	var longer []choice
	for i, c := range choices {
		for j := 0; j < len(classes) && (i+1)*(j+1) <= n; j++ { // for a greater j, n others are at least as likely
			longer = append(longer, choice{targets: append(slices.Clip(c.targets), classes[j]), logProb: c.logProb + logProb + float64(logits[classes[j]]-logits[best])})
		}
	}
	slices.SortStableFunc(longer, func(a, b choice) int { return cmp.Compare(b.logProb, a.logProb) })
	return longer[:min(n, len(longer))]
}
