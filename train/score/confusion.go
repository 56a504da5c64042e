package score

import (
	"cmp"
	"slices"
)

// Confusion counts how often each class was the answer for each right class.
type Confusion struct {
	counts map[[2]string]int // number of rows by answer and right class
}

// ClassScore is the score of one class.
//
//	Precision = Right / Answers
//	Recall    = Right / Rows
//	F1        = 2 · Right / (Answers + Rows), the harmonic mean of both
//
// A quotient with a denominator of 0 is 0.
type ClassScore struct {
	Class     string  `json:"class,omitempty"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
	Right     int     `json:"right"`    // number of rows for which Class is both the answer and the right class
	Answers   int     `json:"answered"` // number of rows for which Class is the answer
	Rows      int     `json:"rows"`     // number of rows for which Class is the right class
}

// Add adds an answer. Any string is a class.
func (c *Confusion) Add(answer, right string) {
	if c.counts == nil {
		c.counts = map[[2]string]int{}
	}
	c.counts[[2]string{answer, right}]++
}

// Count returns the number of rows with this answer and this right class.
func (c *Confusion) Count(answer, right string) int { return c.counts[[2]string{answer, right}] }

// Accuracy returns the share of answers that are right, or 0 without answers.
func (c *Confusion) Accuracy() float64 {
	right, total := 0, 0
	for pair, n := range c.counts {
		if total += n; pair[0] == pair[1] {
			right += n
		}
	}
	return share(right, total)
}

// Classes returns the score of every class that was an answer or a right class, sorted by name.
func (c *Confusion) Classes() []ClassScore {
	classes := tallies{}
	for pair, n := range c.counts {
		classes.get(pair[0]).Answers += n
		classes.get(pair[1]).Rows += n
		if pair[0] == pair[1] {
			classes.get(pair[0]).Right += n
		}
	}
	return classes.sorted(func(ClassScore) int { return 0 })
}

// tallies are the counts of classes, by name.
type tallies map[string]*ClassScore

// get returns the counts of a class, which are 0 at first.
func (t tallies) get(class string) *ClassScore {
	if t[class] == nil {
		t[class] = &ClassScore{Class: class}
	}
	return t[class]
}

// sorted returns the scores of all classes, those with the largest key first, and then by name.
func (t tallies) sorted(key func(ClassScore) int) (scores []ClassScore) {
	for _, s := range t {
		scores = append(scores, s.scored())
	}
	slices.SortFunc(scores, func(a, b ClassScore) int {
		return cmp.Or(cmp.Compare(key(b), key(a)), cmp.Compare(a.Class, b.Class))
	})
	return scores
}

// total returns the score of all classes together, without a Class.
func (t tallies) total() (all ClassScore) {
	for _, s := range t {
		all.Right, all.Answers, all.Rows = all.Right+s.Right, all.Answers+s.Answers, all.Rows+s.Rows
	}
	return all.scored()
}

// scored returns s with the quotients of its counts.
func (s ClassScore) scored() ClassScore {
	s.Precision, s.Recall = share(s.Right, s.Answers), share(s.Right, s.Rows)
	s.F1 = share(2*s.Right, s.Answers+s.Rows)
	return s
}

// Macro returns the means of precision, recall and F1 over Classes, where rare classes count as much as common ones.
// Its counts are sums over Classes. Its Class is empty.
func (c *Confusion) Macro() ClassScore { return macro(c.Classes()) }

func macro(classes []ClassScore) (m ClassScore) {
	for _, s := range classes {
		m.Precision += s.Precision / float64(len(classes))
		m.Recall += s.Recall / float64(len(classes))
		m.F1 += s.F1 / float64(len(classes))
		m.Right, m.Answers, m.Rows = m.Right+s.Right, m.Answers+s.Answers, m.Rows+s.Rows
	}
	return m
}

// share returns part divided by total, or 0 if total is 0.
func share(part, total int) float64 {
	if total == 0 {
		return 0
	}
	return float64(part) / float64(total)
}
