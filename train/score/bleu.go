package score

import (
	"math"
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
	split := b.Split
	if split == nil {
		split = tokens13a
	}
	tokens := split(answer)
	ids := make(map[string]uint32, len(tokens)) // of the answer's tokens, from 1; all other tokens have id 0
	for _, token := range tokens {
		if ids[token] == 0 {
			ids[token] = uint32(len(ids) + 1)
		}
	}
	encode := func(tokens []string) []uint32 {
		units := make([]uint32, len(tokens))
		for i, token := range tokens {
			units[i] = ids[token]
		}
		return units
	}
	grams := ngramsOf(encode(tokens), bleuLongest)
	limits := make([]int, len(grams.length))
	closest := -1
	for _, reference := range orEmpty(references) {
		words := split(reference)
		for node, n := range grams.count(encode(words)) {
			limits[node] = max(limits[node], n)
		}
		if d, least := away(len(words), len(tokens)), away(closest, len(tokens)); closest < 0 || d < least || d == least && len(words) < closest {
			closest = len(words)
		}
	}
	grams.matches(b.right[:], limits)
	for n := range bleuLongest {
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
	var alone []byte // the text with spaces around punctuation that is always a token
	for _, c := range []byte(" " + text + " ") {
		if apart(c) {
			alone = append(alone, ' ', c, ' ')
		} else {
			alone = append(alone, c)
		}
	}
	// Like a regular expression, each rule continues after the two characters that it matched.
	after := pairs(alone, func(a, b byte) bool { return !digit(a) && point(b) }, "a b ")
	before := pairs(after, func(a, b byte) bool { return point(a) && !digit(b) }, " a b")
	dashes := pairs(before, func(a, b byte) bool { return digit(a) && b == '-' }, "a b ")
	return strings.FieldsFunc(string(dashes), isSpace)
}

// apart reports whether a byte is a space or ASCII punctuation, except apostrophe, comma, dash and point.
func apart(c byte) bool {
	return ' ' <= c && c <= '&' || '(' <= c && c <= '+' || c == '/' || ':' <= c && c <= '@' || '[' <= c && c <= '`' || '{' <= c && c <= '~'
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
func point(c byte) bool { return c == '.' || c == ',' }

// pairs replaces two neighbouring bytes with form wherever found returns true for them. In form, a and b stand for the
// two bytes.
func pairs(text []byte, found func(a, b byte) bool, form string) []byte {
	out := make([]byte, 0, len(text)+len(text)/4)
	for i := 0; i < len(text); i++ {
		if i+1 == len(text) || !found(text[i], text[i+1]) {
			out = append(out, text[i])
			continue
		}
		for _, c := range []byte(form) {
			switch c {
			case 'a':
				out = append(out, text[i])
			case 'b':
				out = append(out, text[i+1])
			default:
				out = append(out, ' ')
			}
		}
		i++
	}
	return out
}
