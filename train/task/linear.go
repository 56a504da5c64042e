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

	// fit fits a model.
	fit(ctx context.Context, train, validation linearPart, classes int, o fit.Options) (*linear.Model, *fit.Held, error)
}

// A linearPart has the texts of rows, with classes or a number for each.
type linearPart struct {
	texts   linear.Rows
	targets []float64
}

// linearClasses fits classes.
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

func (linearClasses) fit(ctx context.Context, train, validation linearPart, classes int, o fit.Options) (*linear.Model, *fit.Held, error) {
	return fit.Classes(ctx, train.texts, intsOf(train.targets), classes, validation.texts, intsOf(validation.targets), o)
}

func intsOf(targets []float64) []int {
	classes := make([]int, len(targets))
	for i, x := range targets {
		classes[i] = int(x)
	}
	return classes
}

// linearNumbers fits numbers that are standardised by the rule's Mean and Scale.
type linearNumbers struct{}

func (linearNumbers) targets(c *Config) func(answer string) []float64 {
	return func(answer string) []float64 {
		x, _ := text.Number(answer) // the function row has checked it
		return []float64{(x - c.Task.Mean) / c.Task.Scale}
	}
}

func (linearNumbers) sides(int) sides { return sides{width: 1, numbers: []float64{}} }

func (linearNumbers) fit(ctx context.Context, train, validation linearPart, _ int, o fit.Options) (*linear.Model, *fit.Held, error) {
	return fit.Numbers(ctx, train.texts, train.targets, validation.texts, validation.targets, o)
}

// correct corrects a model and its scores, with scores of training rows by models that haven't seen the row. It scales
// scores of classes so that their softmax has the least cross-entropy. For numbers, the model becomes the line that
// fits them best.
func (s *sides) correct(m *linear.Model) {
	by, plus := float32(0), float32(0)
	if s.numbers != nil {
		by, plus = line(s.linear, s.numbers)
	} else {
		by = bestScale(s.linear, s.classes, s.width)
	}
	m.Scale(by, plus)
	for i := range s.linear {
		s.linear[i] = s.linear[i]*by + plus
	}
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
