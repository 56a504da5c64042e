package toy

import (
	"math/rand/v2"

	"github.com/heed-go/heed/data"
)

// bracketsRule answers whether every bracket is closed. Sample starts from brackets that are all closed. For half of
// the samples, it turns one bracket around or swaps two, so a model must look at all brackets.
var bracketsRule = data.Rule{
	Name: "brackets", About: "whether every bracket is closed", Kind: data.KindClassification,
	Alphabet: "()", Classes: []string{"yes", "no"}, MaxLen: 20, Example: "(()())",
	Sample: func(rng *rand.Rand, maxLen int) string {
		s := nested(rng, 1+rng.IntN(max(1, maxLen/2)))
		switch i, j := rng.IntN(len(s)), rng.IntN(len(s)); rng.IntN(4) {
		case 0:
			s[i] = '(' + ')' - s[i]
		case 1:
			s[i], s[j] = s[j], s[i]
		}
		return string(s[:min(len(s), maxLen)])
	},
	Answer: func(source string) (string, error) {
		open := 0
		for _, bracket := range source {
			if bracket == '(' {
				open++
			} else if open--; open < 0 {
				return "no", nil
			}
		}
		if open > 0 {
			return "no", nil
		}
		return "yes", nil
	},
}

// nested returns 2·pairs brackets in a random order that closes them all.
func nested(rng *rand.Rand, pairs int) []byte {
	s := make([]byte, 2*pairs)
	for i, open, left := 0, 0, pairs; i < len(s); i++ {
		if open == 0 || left > 0 && rng.IntN(2) == 0 {
			s[i] = '('
			open, left = open+1, left-1
		} else {
			s[i] = ')'
			open--
		}
	}
	return s
}
