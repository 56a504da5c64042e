package score

import (
	"math"
	"regexp"
	"strings"
)

// BLEU is the geometric mean of the precisions of 1- to 4-grams of tokens, times a penalty for short answers (Papineni
// et al., BLEU: a Method for Automatic Evaluation of Machine Translation, 2002). It gives the same score as sacreBLEU
// by default (Post, A Call for Clarity in Reporting BLEU Scores, 2018): signature case:mixed, eff:no, tok:13a,
// smooth:exp.
//
// Precision p(n) is the share of the answers' n-grams that match a reference. If an answer has an n-gram more often
// than each of its references, the extra occurrences don't match. c is the number of tokens in all answers. r is the
// number of tokens in the closest reference of each answer. This is the reference closest in length; if two are equally
// close, the shorter. Then
//
//	BLEU = 100 · min(1, e^(1 − r/c)) · (p(1) · p(2) · p(3) · p(4))^(1/4)
//
// The kth p(n) that would be 0 is 1 / (2^k · number of n-grams) instead, so that BLEU isn't 0 just because no 4-gram
// matches. BLEU is 0 if no token matches, or if no answer has four tokens.
type BLEU struct {
	// Split returns the tokens of a text. nil means the rules of mteval-v13a, which published results use: split at
	// white space, make punctuation outside numbers a token of its own, and decode &quot;, &amp;, &lt; and &gt;. For
	// texts that are tokenized already, use strings.Fields, which is sacreBLEU's tok:none.
	Split func(text string) []string

	right, total      [bleuLongest]int // matches and n-grams, by length − 1
	length, reference int              // tokens in the answers, and in their closest references
}

const bleuLongest = 4

// Add adds an answer.
func (b *BLEU) Add(answer string, references ...string) {
	if len(references) == 0 {
		references = []string{""}
	}
	split := b.Split
	if split == nil {
		split = tokens13a
	}
	tokens := split(answer)
	var limits [bleuLongest]map[ngram[string]]int // how often a reference has each n-gram, at most
	for n := range limits {
		limits[n] = map[ngram[string]]int{}
	}
	closest := -1
	for _, reference := range references {
		words := split(reference)
		for n := range limits {
			for g, count := range grams(words, n+1) {
				limits[n][g] = max(limits[n][g], count)
			}
		}
		if d, least := away(len(words), len(tokens)), away(closest, len(tokens)); closest < 0 || d < least || d == least && len(words) < closest {
			closest = len(words)
		}
	}
	for n := range limits {
		for g, count := range grams(tokens, n+1) {
			b.right[n] += min(count, limits[n][g])
		}
		b.total[n] += max(len(tokens)-n, 0)
	}
	b.length += len(tokens)
	b.reference += closest
}

func away(a, b int) int { return max(a-b, b-a) }

// Value returns the BLEU of all answers, from 0 to 100, or 0 without answers.
func (b *BLEU) Value() float64 {
	if b.right[0] == 0 || b.total[bleuLongest-1] == 0 {
		return 0
	}
	logs, missing := 0.0, 1.0
	for n := range bleuLongest {
		precision := share(b.right[n], b.total[n])
		if precision == 0 {
			missing *= 2
			precision = 1 / (missing * float64(b.total[n]))
		}
		logs += math.Log(precision)
	}
	brevity := min(0, 1-float64(b.reference)/float64(b.length))
	return 100 * math.Exp(brevity+logs/bleuLongest)
}

// tokens13a splits a text into tokens by the rules of mteval-v13a.pl, NIST's program of 2009.
func tokens13a(text string) []string {
	text = strings.TrimRightFunc(text, isSpace)
	text = strings.ReplaceAll(text, "<skipped>", "")
	text = strings.ReplaceAll(text, "-\n", "")
	text = strings.ReplaceAll(text, "\n", " ")
	if strings.Contains(text, "&") {
		for _, e := range [...][2]string{{"&quot;", `"`}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}} {
			text = strings.ReplaceAll(text, e[0], e[1])
		}
	}
	text = " " + text + " "
	for _, rule := range rules13a {
		text = rule.found.ReplaceAllString(text, rule.form)
	}
	return strings.FieldsFunc(text, isSpace)
}

// rules13a separate punctuation from words: ASCII punctuation except apostrophe, comma, dash and point, then points and
// commas that don't stand between digits, and dashes after a digit.
var rules13a = []struct {
	found *regexp.Regexp
	form  string
}{
	{regexp.MustCompile("[ -&(-+/:-@[-`{-~]"), " $0 "},
	{regexp.MustCompile("([^0-9])([.,])"), "$1 $2 "},
	{regexp.MustCompile("([.,])([^0-9])"), " $1 $2"},
	{regexp.MustCompile("([0-9])(-)"), "$1 $2 "},
}
