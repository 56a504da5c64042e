// Package toy provides small tasks over strings, such as reversing a word, adding two numbers or reading a date. Their
// answers are known, so a model can learn them without a file, in seconds or minutes. They show and test every kind of
// task that has a [data.Rule].
package toy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/text"
)

// rules lists Heed's own rules, with the default rule first.
var rules = [...]struct {
	data.Rule
	longest int // largest maxLen that Named accepts; 0 if MaxLen can't be changed
}{
	{reverseRule, 64},
	{copyRule, 64},
	{sortRule, 64},
	{addRule, 0},
	{datesRule, 0},
	{bracketsRule, 64},
}

// Names returns the names of all rules that Named knows. The first is the default rule's.
func Names() []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

// Named returns Heed's own rule with this name, for sources of at most maxLen symbols. If maxLen is 0, the rule keeps
// its default MaxLen. Named returns an error if the name is unknown or the rule can't have this maxLen.
func Named(name string, maxLen int) (data.Rule, error) {
	i := slices.Index(Names(), name)
	if i < 0 {
		return data.Rule{}, fmt.Errorf("unknown task %q: the tasks are %s%s", name, strings.Join(Names(), ", "), text.DidYouMean(name, Names()))
	}
	r, longest := rules[i].Rule, rules[i].longest
	switch {
	case maxLen == 0 || maxLen == r.MaxLen:
	case longest == 0:
		return data.Rule{}, fmt.Errorf("task %s: the maximum source length is %d symbols and can't be changed to %d", name, r.MaxLen, maxLen)
	case maxLen < 1 || maxLen > longest:
		return data.Rule{}, fmt.Errorf("task %s: the maximum source length must be from 1 to %d symbols (0: the default, %d), got %d", name, longest, r.MaxLen, maxLen)
	default:
		r.MaxLen = maxLen
		r.Example = r.Example[:min(len(r.Example), maxLen)]
	}
	return r, nil
}
