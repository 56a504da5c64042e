package task

import (
	"context"

	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/linear/fit"
	"github.com/heed-go/heed/internal/text"
)

// A linearKind says what a linear model learns for a kind of task.
type linearKind interface {
	// targets returns a function that returns the right classes or numbers of an answer. Each text of beside.Texts has
	// one.
	targets(c *Config) func(answer string) []float64

	// sides returns what a network and a model compute for no rows yet.
	sides(classes int) sides

	// fit fits a model. It returns also the scores of training texts by models that haven't seen them.
	fit(ctx context.Context, train, validation linearPart, classes int, o fit.Options) (m *linear.Model, held sides, err error)
}

// A linearPart has the texts of rows, with a class or a number for each.
type linearPart struct {
	texts   linear.Rows
	targets []float64
}

// linearClasses fits classes. It scales the scores so that their softmax has the least cross-entropy on the training
// rows, by models that haven't seen the row.
type linearClasses struct{}

func (linearClasses) targets(c *Config) func(answer string) []float64 {
	classesOf := c.classesOf()
	return func(answer string) (targets []float64) {
		for _, class := range classesOf(answer) {
			targets = append(targets, float64(class))
		}
		return targets
	}
}

func (linearClasses) sides(classes int) sides { return sides{width: classes} }

func (l linearClasses) fit(ctx context.Context, train, validation linearPart, classes int, o fit.Options) (*linear.Model, sides, error) {
	s := l.sides(classes)
	s.classes = intsOf(train.targets)
	m, held, err := fit.Classes(ctx, train.texts, s.classes, classes, validation.texts, intsOf(validation.targets), o)
	if err != nil {
		return nil, s, err
	}
	s.classes, s.rows = fit.Pick(s.classes, held.Rows), held.Rows
	by := bestScale(held.Scores, s.classes, classes)
	m.Scale([]float32{by}, []float32{0})
	s.linear = scaled(held.Scores, by, 0)
	return m, s, nil
}

// scaled multiplies scores by a factor, adds a term, and returns them.
func scaled(scores []float32, by, plus float32) []float32 {
	for i := range scores {
		scores[i] = scores[i]*by + plus
	}
	return scores
}

func intsOf(targets []float64) []int {
	classes := make([]int, len(targets))
	for i, x := range targets {
		classes[i] = int(x)
	}
	return classes
}

// linearNumbers fits numbers that are standardised by the rule's Mean and Scale. It corrects the model by the line that
// fits the numbers of the training rows best, given the scores of models that haven't seen the row.
type linearNumbers struct{}

func (linearNumbers) targets(c *Config) func(answer string) []float64 {
	return func(answer string) []float64 {
		x, _ := text.Number(answer) // the function row has checked it
		return []float64{(x - c.Task.Mean) / c.Task.Scale}
	}
}

func (linearNumbers) sides(int) sides { return sides{width: 1} }

func (l linearNumbers) fit(ctx context.Context, train, validation linearPart, _ int, o fit.Options) (*linear.Model, sides, error) {
	s := l.sides(1)
	s.numbers = train.targets
	m, held, err := fit.Numbers(ctx, train.texts, train.targets, validation.texts, validation.targets, o)
	if err != nil {
		return nil, s, err
	}
	s.numbers, s.rows = fit.Pick(s.numbers, held.Rows), held.Rows
	by, plus := line(held.Scores, s.numbers)
	m.Scale([]float32{by}, []float32{plus})
	s.linear = scaled(held.Scores, by, plus)
	return m, s, nil
}

// line returns the factor, from 0, and the term for x with which the sum has the least squared distance from y.
func line(x []float32, y []float64) (by, plus float32) {
	n, meanX, meanY, squares, products := float64(len(x)), 0.0, 0.0, 0.0, 0.0
	for i := range x {
		meanX, meanY = meanX+float64(x[i])/n, meanY+y[i]/n
	}
	for i := range x {
		d := float64(x[i]) - meanX
		squares, products = squares+d*d, products+d*(y[i]-meanY)
	}
	slope := 0.0
	if squares > 0 {
		slope = max(0, products/squares)
	}
	return float32(slope), float32(meanY - slope*meanX)
}
