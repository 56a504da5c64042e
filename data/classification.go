package data

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// KindClassification chooses one of a few classes for a whole source.
const KindClassification Kind = "classification"

// classificationCoder is the Coder of KindClassification. A row's inputs are the symbols of the source, then padding.
// Its target is the index of the answer in Classes, or Ignore if the answer is unknown.
type classificationCoder struct{ coder }

func newClassificationCoder(c coder) (Coder, error) {
	if err := c.checkClasses(); err != nil {
		return nil, err
	}
	if len(c.rule.Classes) < 2 {
		return nil, fmt.Errorf("a rule of kind classification needs at least 2 Classes to choose from, got %d", len(c.rule.Classes))
	}
	c.layout = c.sequenceLayout(len(c.rule.Classes))
	return &classificationCoder{c}, nil
}

// checkClasses returns an error if the rule's Classes can't be labels.
func (c *coder) checkClasses() error {
	seen := map[string]bool{"": true}
	for i, class := range c.rule.Classes {
		if seen[class] {
			return fmt.Errorf("the Classes must differ and none may be empty, got %.100q as number %d", class, i)
		}
		if !utf8.ValidString(class) {
			return fmt.Errorf("the Classes must be UTF-8, got %.100q as number %d", class, i)
		}
		seen[class] = true
	}
	return nil
}

func (l *classificationCoder) Batch(examples []Example) (Batch, error) {
	return l.batch(examples, func(b *Batch, row int, e Example) error {
		source, _, err := l.spell(&e)
		if err != nil {
			return err
		}
		b.Lengths[row] = copy(b.Inputs[row*b.Len:], source)
		b.Targets[row] = slices.Index(l.rule.Classes, e.Answer)
		if b.Targets[row] < 0 && (e.Answer != "" || l.rule.Answer != nil) {
			return l.errorf("the answer to %q must be one of %q, got %q", e.Source, l.rule.Classes, e.Answer)
		}
		return nil
	})
}

func (l *classificationCoder) Answer(targets []int) (string, error) {
	if len(targets) != 1 || targets[0] < 0 || targets[0] >= len(l.rule.Classes) {
		return "", fmt.Errorf("a row has one class from 0 to %d, got %d", len(l.rule.Classes)-1, targets)
	}
	return l.rule.Classes[targets[0]], nil
}
