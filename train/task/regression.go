package task

import (
	"cmp"
	"fmt"
	"iter"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
)

// regression gives each source a number.
type regression struct{ common }

var regressionKind = regression{common{facts{
	name: data.KindRegression, help: "the number for each text in a file",
	format: &rows.Format{Columns: []table.Column{
		textColumn,
		{Role: "number", Names: []string{"number", "value", "score", "rating", "target", "label"}},
	}},
	pairs: true, linear: linearNumbers{}, learns: "numbers", small: true,
	losses: named{
		{Name: "squared", About: "mean squared error"},
		{Name: "huber", About: "Huber's loss: beyond one standard deviation it grows linearly, so outliers count less"},
	},
}}}

// row returns a function that returns an error if the answer of a row isn't a number.
func (regression) row(*Config) func(fields []string) error {
	return func(fields []string) error {
		answer := fields[len(fields)-1]
		_, err := text.Number(answer)
		if err != nil {
			if _, comma := text.CommaNumber(answer); comma { // read decides
				return nil
			}
		}
		return err
	}
}

// read reads numbers with decimal commas, if all numbers have this form. Otherwise it returns an error for the first
// number with a comma.
func (regression) read(c *Config, tables []*table.Table) (notes []string, err error) {
	comma := "" // a number that is none with a point
	for _, t := range tables {
		for i := 0; i < t.Len() && comma == ""; i++ {
			if _, err := text.Number(t.Field(i, 1)); err != nil {
				comma = t.Field(i, 1)
			}
		}
	}
	if comma == "" {
		return nil, nil
	}
	points := map[string]string{} // each number with a point in place of its comma
	for _, t := range tables {
		for i := range t.Len() {
			answer := t.Field(i, 1)
			number, ok := text.CommaNumber(answer)
			if !ok {
				return nil, setting.Errorf("data file %q: %q has a decimal comma, but %q in line %d hasn't: write all numbers with points", t.Name, comma, answer, t.Line(i))
			}
			points[answer] = number
		}
	}
	for _, t := range tables {
		t.Replace(1, points)
	}
	return []string{"decimal commas: all numbers are read with them"}, nil
}

// rows sets the rule's Mean and Scale to the mean and the standard deviation of the training rows.
func (regression) rows(c *Config, s *rows.Set) error {
	mean, spread, mistake := meanAndSpread(s.Train.Answers())
	if spread == 0 {
		return setting.Errorf("data file %q: all training rows have the number %g, so there is nothing to learn: set %s to the columns of texts and numbers", c.Data.File, mean, setting.Path("data.columns"))
	}
	if c.Task.Scale == 0 { // otherwise it comes from a run
		c.Task.Mean, c.Task.Scale = mean, spread
	}
	long := 0
	for answer := range s.Train.Answers() {
		if x, _ := text.Number(answer); math.Abs(x) > 1<<53 {
			long++
		}
	}
	if long > 0 {
		s.Description.Notes = append(s.Description.Notes, fmt.Sprintf("long numbers: %s beyond 2^53, whose last digits are lost", text.Count(long, "number")))
	}
	s.Description.Notes = append(s.Description.Notes,
		fmt.Sprintf("numbers: mean %.6g, standard deviation %.6g", mean, spread),
		fmt.Sprintf("constant: always answering %.6g has a mean absolute error of %.6g in training", mean, mistake))
	return nil
}

// meanAndSpread returns the mean, the standard deviation and the mean absolute deviation of the numbers in texts.
func meanAndSpread(texts iter.Seq[string]) (mean, spread, deviation float64) {
	var n, first, squares float64
	for s := range texts {
		x, _ := text.Number(s) // the function row has checked it
		if n++; n == 1 {
			first = x
		}
		mean += (x - first - mean) / n // exactly 0 for equal numbers
	}
	for s := range texts {
		x, _ := text.Number(s)
		d := x - first - mean
		squares, deviation = squares+d*d, deviation+math.Abs(d)
	}
	return first + mean, math.Sqrt(squares / n), deviation / n
}

func (regression) learner(_ *model.Model, c *Config, _ []float64) learner { return numberLearner{c} }

// A numberLearner learns one number per row, standardised by the rule's Mean and Scale.
type numberLearner struct{ config *Config }

// targets returns the correct numbers (B, 1) and their weights (B, 1): 0 for rows without a number, and otherwise 1.
func (numberLearner) targets(b data.Batch) []*tensor.Dense {
	weights := make([]float32, len(b.Numbers))
	for i, x := range b.Numbers {
		if x == x {
			weights[i] = 1
		}
	}
	column := func(values []float32) *tensor.Dense {
		return tensor.New(tensor.WithShape(b.Size, 1), tensor.WithBacking(values))
	}
	return []*tensor.Dense{column(b.Numbers), column(weights)}
}

// huberDelta is the distance from which the loss huber is linear, in standard deviations of the training rows.
const huberDelta = 1

func (r numberLearner) loss(b *layers.Build, out *G.Node, nodes G.Nodes) (loss layers.Loss, metrics []train.Metric, err error) {
	targets, weights := nodes[0], nodes[1]
	if r.config.Training.Loss == "huber" {
		loss, err = layers.HuberError(b, out, targets, weights, huberDelta)
	} else {
		loss, err = layers.MeanSquaredError(b, out, targets, weights)
	}
	if err != nil {
		return layers.Loss{}, nil, err
	}
	if metrics, err = distances(b, out, targets, weights); err != nil {
		return layers.Loss{}, nil, err
	}
	metrics[1].Of = func(mean float64) float64 { return mean * cmp.Or(r.config.Task.Scale, 1) }
	return loss, metrics, nil
}

// distances returns R² and the mean absolute error.
func distances(b *layers.Build, out, targets, weights *G.Node) ([]train.Metric, error) {
	explained, err := train.RSquared(b, out, targets, weights)
	if err != nil {
		return nil, err
	}
	mistake, err := train.MeanAbsoluteError(b, out, targets, weights)
	return []train.Metric{explained, mistake}, err
}
