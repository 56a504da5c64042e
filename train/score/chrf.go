package score

// CHRF is chrF2, the F-score of character n-grams (Popović, chrF: character n-gram F-score for automatic MT evaluation,
// 2015; β = 2 from her paper of 2016). It gives the same score as sacreBLEU 2 by default (Post, A Call for Clarity in
// Reporting BLEU Scores, 2018): signature case:mixed, eff:yes, nc:6, nw:0, space:no.
//
// White space doesn't count. For each n from 1 to 6, precision is the share of the answers' n-grams that match n-grams
// in the references, and recall is the share of the references' n-grams that match n-grams in the answers. An n-gram
// that occurs a times in an answer and b times in its reference matches min(a, b) times. Both shares are taken over all
// answers together. P and R are the means of precision and recall over every n for which both answers and references
// have n-grams. Then
//
//	chrF = 100 · (1 + β²) · P · R / (β² · P + R)
//
// If an answer has several references, only the one with the highest chrF counts; of equal ones, the first.
type CHRF struct{ stats chrStats }

const (
	chrLongest = 6
	chrBeta    = 2
)

// chrStats counts n-grams by n − 1: in the answers, in the references, and matches.
type chrStats struct{ answer, reference, common [chrLongest]int }

// Add adds an answer.
func (c *CHRF) Add(answer string, references ...string) {
	units := characters(answer)
	grams := ngramsOf(units, chrLongest)
	var best chrStats
	highest := -1.0
	for _, reference := range orEmpty(references) {
		other := characters(reference)
		var s chrStats
		for n := range chrLongest {
			if s.reference[n] = max(len(other)-n, 0); s.reference[n] > 0 {
				s.answer[n] = max(len(units)-n, 0)
			}
		}
		grams.matches(s.common[:], grams.count(other))
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

// Value returns the chrF of all answers, from 0 to 100, or 0 without answers.
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

// characters returns the characters of text that aren't white space.
func characters(text string) (units []uint32) {
	for _, r := range text {
		if !isSpace(r) {
			units = append(units, uint32(r))
		}
	}
	return units
}
