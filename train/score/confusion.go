package score

import (
	"cmp"
	"slices"
)

// Confusion counts answers that are classes beside the right ones.
type Confusion struct {
	counts map[[2]string]int // by answer and right class
}

// ClassScore says how well one class is found. Right is the number of answers of the class that are right.
//
//	Precision = Right / Answers
//	Recall    = Right / Rows
//	F1        = 2 · Right / (Answers + Rows), the harmonic mean of both
//
// What is divided by 0 is 0.
type ClassScore struct {
	Class                 string
	Precision, Recall, F1 float64
	Right, Answers, Rows  int // Answers says how often it was answered, Rows how often it would have been right
}

// Add adds an answer. Any string is a class.
func (c *Confusion) Add(answer, right string) {
	if c.counts == nil {
		c.counts = map[[2]string]int{}
	}
	c.counts[[2]string{answer, right}]++
}

// Count returns how often one class was answered where the other, or the same, was right.
func (c *Confusion) Count(answer, right string) int { return c.counts[[2]string{answer, right}] }

// Accuracy returns the share of answers that are right, 0 of none.
func (c *Confusion) Accuracy() float64 {
	right, all := 0, 0
	for pair, n := range c.counts {
		if all += n; pair[0] == pair[1] {
			right += n
		}
	}
	return share(right, all)
}

// Classes returns the score of every class that was answered or right, in the order of their bytes.
func (c *Confusion) Classes() []ClassScore {
	of := map[string]*ClassScore{}
	get := func(class string) *ClassScore {
		if of[class] == nil {
			of[class] = &ClassScore{Class: class}
		}
		return of[class]
	}
	for pair, n := range c.counts {
		get(pair[0]).Answers += n
		get(pair[1]).Rows += n
		if pair[0] == pair[1] {
			get(pair[0]).Right += n
		}
	}
	var scores []ClassScore
	for _, s := range of {
		s.Precision, s.Recall = share(s.Right, s.Answers), share(s.Right, s.Rows)
		s.F1 = share(2*s.Right, s.Answers+s.Rows)
		scores = append(scores, *s)
	}
	slices.SortFunc(scores, func(a, b ClassScore) int { return cmp.Compare(a.Class, b.Class) })
	return scores
}

// Macro returns the means of precision, recall and F1 over the Classes, in which each class counts once, however rare,
// and the sums of their counts.
func (c *Confusion) Macro() ClassScore {
	var m ClassScore
	classes := c.Classes()
	for _, s := range classes {
		m.Precision += s.Precision / float64(len(classes))
		m.Recall += s.Recall / float64(len(classes))
		m.F1 += s.F1 / float64(len(classes))
		m.Right, m.Answers, m.Rows = m.Right+s.Right, m.Answers+s.Answers, m.Rows+s.Rows
	}
	return m
}

// share returns a part of all, 0 of none.
func share(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}
