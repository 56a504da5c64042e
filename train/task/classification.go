package task

import (
	"maps"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
)

// classification gives each source one label.
type classification struct{ common }

var classificationKind = classification{common{Kind{
	Name: data.KindClassification, About: "the label of each text in a file",
	Columns: []Column{
		{Role: "text", Names: []string{"text", "source", "input", "sentence", "review", "message"}},
		{Role: "label", Names: []string{"label", "class", "category", "sentiment", "target"}},
	},
	Classes: true, Unit: "labels", Right: "right",
	units: "characters, tokens, bpe",
}}}

const (
	maxClasses   = 10_000 // most different labels
	mostDistinct = 20     // most different labels if most of them occur only once or twice
)

// rows sets the rule's Classes to the different labels in the file.
func (classification) rows(c *Config, s *rowSet) error {
	if c.Task.Classes != nil {
		return nil
	}
	labels := map[string]bool{}
	for _, r := range []rows{s.trains, s.validates} {
		for label := range r.column(1) {
			labels[label] = true
		}
	}
	n, rows := len(labels), len(s.trains.number)+len(s.validates.number)
	if n > mostDistinct && 2*n > rows {
		return setting.Errorf("data file %q has %d different labels in %d rows, in its columns %s: set %s to the columns of texts and labels, or use %s seq2seq if answers are free text", c.Data.File, n, rows, s.look.Columns, setting.Path("data.columns"), setting.Path("task"))
	}
	if n < 2 || n > maxClasses {
		return setting.Errorf("data file %q has %s, but needs 2 to %d different labels: set %s to the columns of texts and labels, or use %s seq2seq if answers are free text", c.Data.File, text.Count(n, "label"), maxClasses, setting.Path("data.columns"), setting.Path("task"))
	}
	c.Task.Classes = slices.Sorted(maps.Keys(labels))
	return nil
}

func (classification) network(m *Model) (forward, error) {
	net, err := layers.NewSequenceClassifier(m.Params, layers.SequenceClassifierConfig{Model: m.Config.Model})
	return func(b *layers.Build, in G.Nodes) (*G.Node, error) {
		return net.Forward(b, in[0], layers.Mask{KeyLengths: in[1]}) // (B, Classes)
	}, err
}
