package data

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// maxTexts is the maximum of a rule's Texts.
const maxTexts = 64

// maxName is the maximum length of a Name in bytes. Messages and folders show the name.
const maxName = 64

// NewCoder returns the Coder for a rule's kind. It returns an error if the rule lacks a field that its kind needs, or
// has a field that its kind can't use.
func NewCoder(rule Rule) (Coder, error) {
	c, err := newCoder(rule)
	if err != nil {
		return nil, fmt.Errorf("task %.100q: %w", rule.Name, err)
	}
	return c, nil
}

func newCoder(rule Rule) (Coder, error) {
	plain := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' }
	switch {
	case rule.Name == "" || len(rule.Name) > maxName || strings.TrimFunc(rule.Name, plain) != "":
		return nil, fmt.Errorf("a rule's Name must have 1 to %d bytes, and only letters, digits, - and _, got %.100q; for one of Heed's own rules, call toy.Named", maxName, rule.Name)
	case rule.MaxLen < 1 || rule.MaxAnswer < 0:
		return nil, fmt.Errorf("MaxLen must be at least 1 and MaxAnswer at least 0, got %d and %d", rule.MaxLen, rule.MaxAnswer)
	case max(rule.MaxLen, rule.MaxAnswer) > longest:
		return nil, fmt.Errorf("MaxLen and MaxAnswer may be at most %d, got %d and %d", longest, rule.MaxLen, rule.MaxAnswer)
	}
	k, ok := kinds[rule.Kind]
	switch {
	case !ok:
		return nil, fmt.Errorf("the kind must be one of %q, got %q", slices.Sorted(maps.Keys(kinds)), rule.Kind)
	case rule.Classes != nil && !k.classes:
		return nil, fmt.Errorf("a rule of kind %q can't have Classes", rule.Kind)
	case rule.Separator != "" && !k.separator:
		return nil, fmt.Errorf("a rule of kind %q can't have a Separator", rule.Kind)
	case rule.Pairs && !k.pairs:
		return nil, fmt.Errorf("a rule of kind %q can't have Pairs", rule.Kind)
	case (rule.Texts != 0 || rule.Scored) && !k.texts:
		return nil, fmt.Errorf("a rule of kind %q can't have Texts or Scored", rule.Kind)
	case (rule.Unanswered || rule.Starts) && !k.parts:
		return nil, fmt.Errorf("a rule of kind %q can't have Unanswered or Starts", rule.Kind)
	case rule.Texts < 0 || rule.Texts == 1 || rule.Texts > maxTexts || rule.Scored && rule.Texts != 2:
		return nil, fmt.Errorf("Texts must be 0 or from 2 to %d, and 2 if Scored is true, got %d, %t", maxTexts, rule.Texts, rule.Scored)
	case rule.MaxAnswer != 0 && !k.maxAnswer:
		return nil, fmt.Errorf("a rule of kind %q can't have a MaxAnswer", rule.Kind)
	case (rule.Mean != 0 || rule.Scale != 0) && !k.number:
		return nil, fmt.Errorf("a rule of kind %q can't have a Mean or a Scale", rule.Kind)
	case rule.Target != nil && !k.target:
		return nil, fmt.Errorf("a rule of kind %q can't have a Target", rule.Kind)
	}
	c, err := tokenized(rule)
	if err != nil {
		return nil, err
	}
	if c.cuts = k.cuts; c.cuts && c.published != nil {
		c.published = c.published.WithLimit(rule.MaxLen)
	}
	return k.coder(c)
}
