package toy

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/heed-go/heed/data"
)

const longestSum = len("99+99")

var addRule = data.Rule{
	Name: "add", About: "the sum of two numbers from 0 to 99", Kind: data.KindTagging,
	Alphabet: "0123456789+", MaxLen: longestSum, Example: "27+35",
	Sample: func(rng *rand.Rand, _ int) string {
		return strconv.Itoa(rng.IntN(100)) + "+" + strconv.Itoa(rng.IntN(100))
	},
	Answer: sum,
	Spell:  sumColumns,
	Read: func(spelled string) string {
		return strings.TrimLeft(spelled[:max(0, len(spelled)-1)], "0") + spelled[max(0, len(spelled)-1):]
	},
}

// sumColumns pads the two numbers with zeros to two digits, and the answer to longestSum digits.
func sumColumns(source, answer string) (string, string) {
	if _, err := sum(source); err != nil {
		return source, answer
	}
	a, b, _ := strings.Cut(source, "+")
	return zeros(a, 2) + "+" + zeros(b, 2), zeros(answer, longestSum)
}

// zeros pads digits with leading zeros to a length.
func zeros(digits string, length int) string {
	return strings.Repeat("0", max(0, length-len(digits))) + digits
}

func sum(source string) (string, error) {
	a, b, _ := strings.Cut(source, "+")
	x, errA := strconv.ParseUint(a, 10, 64) // ParseUint accepts no sign
	y, errB := strconv.ParseUint(b, 10, 64)
	if errA != nil || errB != nil || len(a) > 2 || len(b) > 2 {
		return "", fmt.Errorf("expected two numbers of one or two digits with a + between them, such as 12+34, got %q", source)
	}
	return strconv.FormatUint(x+y, 10), nil
}
