package score

// CHRF is chrF2, the F-score of character n-grams (Popović, chrF: character n-gram F-score for automatic MT evaluation,
// 2015, with her β = 2 of 2016), as sacreBLEU 2 computes it by default (Post, A Call for Clarity in Reporting BLEU
// Scores, 2018): signature case:mixed, eff:yes, nc:6, nw:0, space:no.
//
// White space is taken out. For n from 1 to 6, precision is the share of the answers' n-grams that their references
// have, recall the share of the references' that the answers have, both of all answers together; each n-gram matches
// as often as it is in both. Over the n for which there are n-grams, P and R are their means, and
//
//	chrF = 100 · (1 + β²) · P · R / (β² · P + R)
//
// Of several references, each answer counts beside the one that gives it the highest chrF, the first of equals.
type CHRF struct {
	stats  chrStats
	grams  ngrams
	answer []uint32
	other  []uint32
}

const (
	chrLongest = 6
	chrBeta    = 2
)

// chrStats has, for each length less 1, the n-grams of answers and of references, and those in common.
type chrStats struct{ answer, reference, common [chrLongest]int }

// Add adds an answer.
func (c *CHRF) Add(answer string, references ...string) {
	if len(references) == 0 {
		references = []string{""}
	}
	c.grams.longest = chrLongest
	c.answer = characters(c.answer, answer)
	c.grams.index(c.answer)
	var best chrStats
	highest := -1.0
	for _, reference := range references {
		c.other = characters(c.other, reference)
		var s chrStats
		for n := range chrLongest {
			if s.reference[n] = max(len(c.other)-n, 0); s.reference[n] > 0 {
				s.answer[n] = max(len(c.answer)-n, 0)
			}
		}
		c.grams.matches(s.common[:], c.grams.count(c.other))
		if f := s.score(chrBeta); f > highest {
			best, highest = s, f
		}
	}
	for n := range chrLongest {
		c.stats.answer[n] += best.answer[n]
		c.stats.reference[n] += best.reference[n]
		c.stats.common[n] += best.common[n]
	}
}

// Value returns chrF of all that was added, from 0 to 100, 0 of nothing.
func (c *CHRF) Value() float64 { return c.stats.score(chrBeta) }

func (s *chrStats) score(beta float64) float64 {
	var precision, recall, lengths float64
	for n := range chrLongest {
		if s.answer[n] > 0 && s.reference[n] > 0 {
			precision += share(s.common[n], s.answer[n])
			recall += share(s.common[n], s.reference[n])
			lengths++
		}
	}
	if precision == 0 || recall == 0 {
		return 0
	}
	precision, recall = precision/lengths, recall/lengths
	return 100 * (1 + beta*beta) * precision * recall / (beta*beta*precision + recall)
}

// characters returns the characters of a text that aren't white space, in memory to use.
func characters(to []uint32, text string) []uint32 {
	to = to[:0]
	for _, r := range text {
		if !isSpace(r) {
			to = append(to, uint32(r))
		}
	}
	return to
}
