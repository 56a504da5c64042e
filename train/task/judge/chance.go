package judge

import (
	"cmp"
	"math"

	"github.com/heed-go/heed/internal/text"
)

// chance returns the probability that two equally good models differ on the judged rows at least as much as this report
// and the report of its baseline. It counts the rows on which one of them is nearer to the reference, and returns the
// probability of the exact two-sided sign test; for labels, this is McNemar's test.
func (classes) chance(r, baseline *Report) float64 {
	nearer, farther := 0, 0
	for i := range r.Judged {
		switch cmp.Compare(r.Judged[i].distance(), baseline.Judged[i].distance()) {
		case -1:
			nearer++
		case 1:
			farther++
		}
	}
	return signTest(nearer, farther)
}

// chance compares Fisher's z of rank correlations, if there are scores, as if they came from different rows, which is
// cautious.
func (t texts) chance(r, baseline *Report) float64 {
	switch {
	case !r.scored():
		return t.classes.chance(r, baseline)
	case len(r.Judged) < 10: // so few ranks are often alike or opposite by chance
		return 1
	}
	spread := math.Sqrt(2 * 1.06 / float64(len(r.Judged)-3)) // Fieller, Hartley and Pearson, 1957
	z := math.Abs(math.Atanh(r.Numbers.Spearman())-math.Atanh(baseline.Numbers.Spearman())) / spread
	if z != z { // a correlation is undefined, or both are perfect
		return 1
	}
	return math.Erfc(z / math.Sqrt2)
}

// distance says how far the answer is from the nearest reference.
func (j *Judged) distance() float64 {
	if j.Answer.Number == nil {
		return float64(j.Edits)
	}
	x, _ := text.Number(j.References[0]) // the file's numbers have been checked
	return math.Abs(*j.Answer.Number - x)
}

// signTest returns the probability that a+b tosses of a coin show numbers of heads and tails that differ at least as
// much as a and b.
func signTest(a, b int) float64 {
	logFactorial := func(n int) float64 {
		x, _ := math.Lgamma(float64(n + 1))
		return x
	}
	n, sum := a+b, 0.0
	for k := max(a, b); k <= n; k++ {
		sum += math.Exp(logFactorial(n) - logFactorial(k) - logFactorial(n-k) - float64(n)*math.Ln2)
	}
	return min(1, 2*sum)
}
