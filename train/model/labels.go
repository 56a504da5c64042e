package model

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/setting"
)

// Labels are labels of texts that a model of natural language inference chooses among without having learned them (Yin
// et al., 2019): it reads each text with a sentence about each label, and says whether the text entails that sentence.
// This is the pipeline zero-shot-classification of transformers. A published model cuts only a text that is too long,
// and not the sentence.
type Labels struct {
	Names    []string
	Template string // the sentence about a label, with {} in the label's place; empty means "This example is {}."

	// Several says that several labels, or none, may be right for a text. The probability of a label is then the one of
	// entailment against contradiction. Otherwise, the probabilities of all labels add up to 1. For a single label,
	// Several counts as true.
	Several bool
}

// entailment returns the index of the label for entailment, the first whose name begins with entail, or -1.
func entailment(names []string) int {
	return slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(strings.ToLower(name), "entail") })
}

// check returns an error if the model can't use the labels together with the options.
func (l *Labels) check(o *PredictOptions, d Description) error {
	if d.Labels != nil {
		return d.Labels
	}
	switch template := strings.Split(cmp.Or(l.Template, defaultTemplate), "{}"); {
	case len(l.Names) == 0:
		return setting.Errorf("%s must have at least one label, got none", setting.Path("labels"))
	case len(template) != 2 || strings.ContainsAny(template[0]+template[1], "{}"):
		return setting.Errorf("%s must have {} once, where the label goes, and no other braces, got %.100q", setting.Path("template"), l.Template)
	case o.Threshold != (Threshold{}):
		return setting.Errorf("%s is for the labels of the model, not for %s", setting.Path("threshold"), setting.Path("labels"))
	}
	return nil
}

const defaultTemplate = "This example is {}."

// infer answers inputs with labels.
func (m *Model) infer(ctx context.Context, inputs []string, o PredictOptions) ([]Answer, error) {
	names, answers := o.Labels.Names, make([]Answer, len(inputs))
	var pairs []pair
	for i, input := range inputs {
		if answers[i].Input = input; m.Config.Published() {
			answers[i].Unknown = m.unanswered(input, nil).Unknown
		}
		for _, name := range names {
			pairs = append(pairs, pair{first: input, second: strings.Replace(cmp.Or(o.Labels.Template, defaultTemplate), "{}", name, 1)})
		}
	}
	rows, err := m.readPairs(ctx, pairs, true, query{keep: true})
	if err != nil {
		return nil, err
	}
	classes := m.Config.Task.Classes
	yes, no := entailment(classes), 0
	if yes == 0 {
		no = len(classes) - 1
	}
	logProbs := make([]float64, len(pairs)) // of labels among each other, or of each by itself
	alone := o.Labels.Several || len(names) == 1
	for _, q := range rows {
		logits := m.Mixture.Logits(q.output, q.linear, len(classes))
		if logProbs[q.place] = float64(logits[yes]); alone {
			logProbs[q.place] = -math.Log1p(math.Exp(float64(logits[no]) - float64(logits[yes])))
		}
	}
	for i := range answers {
		a, n := &answers[i], len(names)
		among := logit.Probabilities(logProbs[i*n:][:n])
		for k, x := range logProbs[i*n:][:n] {
			p := pairs[i*n+k]
			if !alone {
				x = math.Log(among[k])
			}
			if a.Cut = a.Cut || p.cut; p.err != nil && a.Err == nil {
				a.Err = &InputError{a.Input, p.err}
			}
			a.Top = append(a.Top, Alternative{Text: names[k], LogProb: x})
		}
		if a.Err != nil {
			a.Top = nil
			continue
		}
		slices.SortStableFunc(a.Top, func(x, y Alternative) int { return cmp.Compare(y.LogProb, x.LogProb) })
		a.Text, a.LogProb = a.Top[0].Text, a.Top[0].LogProb
		if a.Top = a.Top[:min(o.Top, n)]; o.Top == 0 {
			a.Top = nil
		}
	}
	return answers, nil
}
