package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

const (
	letters       = "abcdefghijklmnopqrstuvwxyz"
	defaultMaxLen = 10
	longestWord   = 64
	longestSum    = len("99+99")
)

// wordTask makes tasks over words of letters.
func wordTask(rule func(word string) string) func(maxLen int) (Task, error) {
	return func(maxLen int) (Task, error) {
		if maxLen == 0 {
			maxLen = defaultMaxLen
		}
		if maxLen < 1 || maxLen > longestWord {
			return Task{}, fmt.Errorf("the longest source may have 1 to %d symbols (0: the default, %d), got %d", longestWord, defaultMaxLen, maxLen)
		}
		return Task{
			Alphabet: letters, MaxLen: maxLen, MaxAnswer: maxLen,
			sample: func(rng *rand.Rand) string { return word(rng, maxLen) },
			answer: func(source string) (string, error) { return rule(source), nil },
		}, nil
	}
}

func word(rng *rand.Rand, maxLen int) string {
	w := make([]byte, 1+rng.IntN(maxLen))
	for i := range w {
		w[i] = letters[rng.IntN(len(letters))]
	}
	return string(w)
}

func reversed(word string) string {
	w := []byte(word)
	slices.Reverse(w)
	return string(w)
}

func sorted(word string) string {
	w := []byte(word)
	slices.Sort(w)
	return string(w)
}

// addTask makes the task of sums.
func addTask(maxLen int) (Task, error) {
	if maxLen != 0 && maxLen != longestSum {
		return Task{}, fmt.Errorf("the longest source has %d symbols, which can't be changed to %d", longestSum, maxLen)
	}
	return Task{
		Alphabet: "0123456789+", MaxLen: longestSum, MaxAnswer: len("198"),
		sample: func(rng *rand.Rand) string {
			return strconv.Itoa(rng.IntN(100)) + "+" + strconv.Itoa(rng.IntN(100))
		},
		answer:  sum,
		columns: sumColumns,
	}, nil
}

// sumColumns fills a sum's numbers to two digits, and its answer to the same length as the sum.
func sumColumns(source, answer string) (string, string) {
	a, b, _ := strings.Cut(source, "+")
	return zeros(a, 2) + "+" + zeros(b, 2), zeros(answer, longestSum)
}

// zeros puts zeros before digits, up to a length.
func zeros(digits string, length int) string {
	return strings.Repeat("0", max(0, length-len(digits))) + digits
}

func sum(source string) (string, error) {
	a, b, _ := strings.Cut(source, "+")
	x, okA := number(a)
	y, okB := number(b)
	if !okA || !okB {
		return "", fmt.Errorf("want two numbers of one or two digits with a + between them, such as 12+34, got %q", source)
	}
	return strconv.Itoa(x + y), nil
}

// number is the value of one or two digits.
func number(digits string) (int, bool) {
	if len(digits) < 1 || len(digits) > 2 || strings.Contains(digits, "+") {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}
