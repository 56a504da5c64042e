package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/heed-go/heed/internal/text"
)

// deviations is the number of standard deviations within which 95 % of normal numbers are.
const deviations = 1.96

// Interval returns the 95 % confidence interval of the kind's score, for other rows like the judged ones. It returns
// zeros if the score isn't defined.
func (r *Report) Interval() [2]float64 {
	if len(r.Judged) == 0 {
		return [2]float64{}
	}
	return r.kind.interval(r)
}

func (classes) interval(r *Report) [2]float64 {
	return wilson(float64(r.Right)/float64(len(r.Judged)), float64(len(r.Judged)))
}

// interval counts independent answers, as many as would make the share of right tags vary as much as the rows do: tags
// of one row are alike (Korn and Graubard, "Confidence Intervals for Proportions with Small Expected Number of Positive
// Counts Estimated from Survey Data", 1998).
func (tags) interval(r *Report) [2]float64 {
	right, tags, squares, n := r.Classes.Accuracy(), 0.0, 0.0, float64(len(r.Judged))
	for _, j := range r.Judged {
		row := float64(len(r.symbols(j.References[0])))
		d := float64(j.Edits) - (1-right)*row
		tags, squares = tags+row, squares+d*d
	}
	if squares > 0 {
		n = min(right*(1-right)*tags*tags/squares, tags)
	}
	return wilson(right, n)
}

func (numbers) interval(r *Report) [2]float64 {
	var answers, references []float64
	for _, j := range r.Judged {
		if x, err := text.Number(j.References[0]); err == nil && j.Answer.Number != nil {
			answers, references = append(answers, *j.Answer.Number), append(references, x)
		}
	}
	return bootstrap(len(answers), func(rows []int) float64 {
		mean, residual, variation := 0.0, 0.0, 0.0
		for _, i := range rows {
			mean += references[i] / float64(len(rows))
		}
		for _, i := range rows {
			e, d := answers[i]-references[i], references[i]-mean
			residual, variation = residual+e*e, variation+d*d
		}
		return 1 - residual/variation
	})
}

// interval uses Fisher's z of a rank correlation (Fieller, Hartley and Pearson, "Tests for Rank Correlation
// Coefficients", 1957).
func (texts) interval(r *Report) [2]float64 {
	if !r.scored() {
		return bootstrap(len(r.Judged), func(rows []int) float64 {
			sum := 0.0
			for _, i := range rows {
				sum += 1 / float64(1+r.Judged[i].Edits)
			}
			return sum / float64(len(rows))
		})
	}
	z, half := math.Atanh(r.Numbers.Spearman()), deviations*math.Sqrt(1.06/float64(len(r.Judged)-3))
	if math.IsNaN(z+half) || len(r.Judged) < 4 {
		return [2]float64{}
	}
	return [2]float64{math.Tanh(z - half), math.Tanh(z + half)}
}

// wilson returns the interval of a share that n independent answers have (Wilson, "Probable Inference, the Law of
// Succession, and Statistical Inference", 1927).
func wilson(share, n float64) [2]float64 {
	w := deviations * deviations / n
	middle, half := (share+w/2)/(1+w), math.Sqrt(w*share*(1-share)+w*w/4)/(1+w)
	return [2]float64{max(0, middle-half), min(1, middle+half)}
}

// bootstrap returns the interval of a value of n rows. It contains the values of 1,000 random draws of n rows, with
// repetition, but for the outermost. Their share is less than 5 % for few rows, as a Student interval is wider than a
// normal one (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015). It returns zeros if there are draws
// without a value, or fewer than two rows.
func bootstrap(n int, value func(rows []int) float64) [2]float64 {
	if n < 2 {
		return [2]float64{}
	}
	const draws = 1000
	random, rows, values := rand.New(rand.NewPCG(1, 2)), make([]int, n), make([]float64, draws)
	for i := range values {
		for k := range rows {
			rows[k] = random.IntN(n)
		}
		if values[i] = value(rows); math.IsNaN(values[i]) || math.IsInf(values[i], 0) {
			return [2]float64{}
		}
	}
	slices.Sort(values)
	student := deviations + (deviations*deviations*deviations+deviations)/4/float64(n-1) // nearly its quantile
	outer := int(draws / 2 * math.Erfc(student*math.Sqrt(float64(n)/float64(n-1)/2)))
	return [2]float64{values[outer], values[draws-1-outer]}
}

// intervalText says an interval in words, to follow others after a semicolon. The name, such as " of R²", tells its
// value from others.
func intervalText(interval [2]float64, name string) string {
	if interval == [2]float64{} {
		return ""
	}
	return fmt.Sprintf("; 95 %% interval%s %.3f to %.3f", name, interval[0], interval[1])
}
