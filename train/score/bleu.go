package score

import (
	"math"
	"strings"
)

// BLEU is the geometric mean of the precisions of 1- to 4-grams of tokens, times a penalty for being short (Papineni
// and others, BLEU: a Method for Automatic Evaluation of Machine Translation, 2002), as sacreBLEU computes it by
// default (Post, A Call for Clarity in Reporting BLEU Scores, 2018): signature case:mixed, eff:no, tok:13a, smooth:exp.
//
// Of all answers together, precision p(n) is the share of the n-grams that a reference has, where each n-gram counts at
// most as often as it is in the reference that has it most often; c is the number of tokens of the answers, r that of
// the references whose lengths are closest to their answers', the shorter of two. Then
//
//	BLEU = 100 · min(1, e^(1 − r/c)) · (p(1) · p(2) · p(3) · p(4))^(1/4)
//
// The kth of the p(n) that would be 0 is 1 / (2^k · n-grams), so that a corpus with no 4-gram in common isn't 0. It is
// 0 if no token is right, or if no answer has four tokens.
type BLEU struct {
	// Split returns the tokens of a text. With nil they are those of mteval-v13a, which is how results are compared:
	// punctuation that isn't within a number is a token of its own, &quot;, &amp;, &lt; and &gt; are what they stand
	// for, and white space is between tokens. For texts that are tokens already, strings.Fields is tok:none.
	Split func(text string) []string

	right, all        [bleuLongest]int // by the n-gram's length less 1
	length, reference int              // tokens

	grams ngrams
	ids   map[string]uint32 // of the answer's tokens, from 1; 0 is any other
	units []uint32
	most  []int
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
	if b.ids == nil || len(b.ids) > large {
		b.ids = map[string]uint32{}
	}
	clear(b.ids)
	for _, token := range tokens {
		if b.ids[token] == 0 {
			b.ids[token] = uint32(len(b.ids) + 1)
		}
	}
	b.grams.longest = bleuLongest
	b.grams.index(b.encode(tokens))
	b.most = append(b.most[:0], make([]int, len(b.grams.length))...)
	closest := -1
	for _, reference := range references {
		of := split(reference)
		for node, n := range b.grams.count(b.encode(of)) {
			b.most[node] = max(b.most[node], n)
		}
		if d, least := away(len(of), len(tokens)), away(closest, len(tokens)); closest < 0 || d < least || d == least && len(of) < closest {
			closest = len(of)
		}
	}
	b.grams.matches(b.right[:], b.most)
	for n := range bleuLongest {
		b.all[n] += max(len(tokens)-n, 0)
	}
	b.length += len(tokens)
	b.reference += closest
}

func (b *BLEU) encode(tokens []string) []uint32 {
	b.units = b.units[:0]
	for _, token := range tokens {
		b.units = append(b.units, b.ids[token])
	}
	return b.units
}

func away(a, b int) int { return max(a-b, b-a) }

// Value returns BLEU of all that was added, from 0 to 100, 0 of nothing.
func (b *BLEU) Value() float64 {
	if b.right[0] == 0 || b.all[bleuLongest-1] == 0 {
		return 0
	}
	logs, missing := 0.0, 1.0
	for n := range bleuLongest {
		precision := share(b.right[n], b.all[n])
		if precision == 0 {
			missing *= 2
			precision = 1 / (missing * float64(b.all[n]))
		}
		logs += math.Log(precision)
	}
	brevity := min(0, 1-float64(b.reference)/float64(b.length))
	return 100 * math.Exp(brevity+logs/bleuLongest)
}

// tokens13a takes a text into tokens as mteval-v13a.pl, NIST's program of 2009, does.
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
	var alone []byte // with the punctuation that is always a token of its own
	for _, c := range []byte(" " + text + " ") {
		if apart(c) {
			alone = append(alone, ' ', c, ' ')
		} else {
			alone = append(alone, c)
		}
	}
	// Each rule goes on after both characters that it found.
	after := pairs(alone, func(a, b byte) bool { return !digit(a) && point(b) }, "a b ")
	before := pairs(after, func(a, b byte) bool { return point(a) && !digit(b) }, " a b")
	dashes := pairs(before, func(a, b byte) bool { return digit(a) && b == '-' }, "a b ")
	return strings.FieldsFunc(string(dashes), isSpace)
}

// apart says whether a byte is ASCII punctuation or a space, but for the apostrophe, the comma, the dash and the point.
func apart(c byte) bool {
	return ' ' <= c && c <= '&' || '(' <= c && c <= '+' || c == '/' || ':' <= c && c <= '@' || '[' <= c && c <= '`' || '{' <= c && c <= '~'
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
func point(c byte) bool { return c == '.' || c == ',' }

// pairs writes two bytes in a row that are found as a form has them, with a for the one and b for the other.
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
