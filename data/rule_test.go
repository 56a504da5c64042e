package data

import "testing"

// Named is toy.Named. The tests of package data_test set it, because package toy imports data.
var Named func(name string, maxLen int) (Rule, error)

func named(t testing.TB, name string, maxLen int) Rule {
	t.Helper()
	rule, err := Named(name, maxLen)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func TestZeroRule(t *testing.T) {
	_, err := NewCoder(Rule{})
	wantError(t, err, "toy.Named")
}

func newCoderOf(t testing.TB, rule Rule) Coder {
	t.Helper()
	coder, err := NewCoder(rule)
	if err != nil {
		t.Fatal(err)
	}
	return coder
}

// examplesOf returns examples with these sources and the rule's answers.
func examplesOf(t testing.TB, rule Rule, sources ...string) []Example {
	t.Helper()
	var examples []Example
	for _, source := range sources {
		answer, err := rule.Answer(source)
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, Example{source, answer})
	}
	return examples
}
