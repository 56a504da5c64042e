package data

import (
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// Named is toy.Named. The tests of package data_test set it, because package toy imports data.
var Named func(name string, maxLen int) (Rule, error)

func named(t testing.TB, name string, maxLen int) Rule {
	t.Helper()
	return must.Get(Named(name, maxLen))(t)
}

func TestZeroRule(t *testing.T) {
	must.Refuse(NewCoder(Rule{}))(t, "toy.Named")
}

func newCoderOf(t testing.TB, rule Rule) Coder {
	t.Helper()
	return must.Get(NewCoder(rule))(t)
}

// examplesOf returns examples with these sources and the rule's answers.
func examplesOf(t testing.TB, rule Rule, sources ...string) []Example {
	t.Helper()
	var examples []Example
	for _, source := range sources {
		examples = append(examples, Example{Source: source, Answer: must.Get(rule.Answer(source))(t)})
	}
	return examples
}
