package data

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// KindMultiLabel gives a whole source any number of labels, also none. In an Example, the answer has the labels with
// the rule's Separator between them: see Rule.Labels.
const KindMultiLabel Kind = "multilabel"

// multiLabelCoder is the Coder of KindMultiLabel. A row's inputs are the symbols of the source, then padding. It has a
// target for each of the Classes: 1 if it is a label of the row, and otherwise 0. Without an answer, all are Ignore.
type multiLabelCoder struct {
	coder
	numbers map[string]int // of the labels
}

func newMultiLabelCoder(c coder) (Coder, error) {
	if err := c.checkClasses(); err != nil {
		return nil, err
	}
	if len(c.rule.Classes) < 1 || c.rule.Separator == "" {
		return nil, errors.New("a rule of kind multilabel needs at least one of the Classes, and a Separator")
	}
	c.layout = c.sequenceLayout(len(c.rule.Classes))
	c.layout.TargetLen = len(c.rule.Classes)
	l := &multiLabelCoder{c, map[string]int{}}
	for i, class := range c.rule.Classes {
		l.numbers[class] = i
	}
	return l, nil
}

func (l *multiLabelCoder) Batch(examples []Example) (Batch, error) {
	return l.answers(examples, func(b *Batch, row int, source, answer string) error {
		targets := b.Targets[row*b.TargetLen:][:b.TargetLen]
		clear(targets)
		for _, label := range l.rule.Labels(answer) {
			i, ok := l.numbers[label]
			if !ok {
				return l.errorf("the labels of %q must be among %q, got %q", source, l.rule.Classes, label)
			}
			targets[i] = 1
		}
		return nil
	})
}

func (l *multiLabelCoder) Answer(targets []int) (string, error) {
	if len(targets) != len(l.rule.Classes) {
		return "", fmt.Errorf("a row has %d targets, got %d", len(l.rule.Classes), len(targets))
	}
	var labels []string
	for i, class := range l.rule.Classes {
		if targets[i] == 1 {
			labels = append(labels, class)
		}
	}
	return strings.Join(labels, l.rule.Separator), nil
}

// Labels returns the labels of an answer, each once, in their order and without spaces around them. If answers have
// only one label, without a Separator, it is the answer.
func (r *Rule) Labels(answer string) []string {
	if r.Separator == "" {
		return []string{answer}
	}
	labels := []string{}
	for label := range strings.SplitSeq(answer, r.Separator) {
		if label = strings.TrimSpace(label); label != "" && !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	return labels
}
