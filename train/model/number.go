package model

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/layers/pretrained"
)

// numberHead gives each source a number.
type numberHead struct{ pooledHead }

func (numberHead) about() facts {
	return facts{kind: data.KindRegression, use: "predict", rows: true, pairs: true, linear: true, units: "characters, tokens, words, bpe"}
}

func (numberHead) published(m *pretrained.Config, r *data.Rule) bool {
	if m.Head != "classes" || len(m.Labels) != 1 {
		return false
	}
	if r.About = "a number for a text"; m.Sigmoid {
		r.About = "a score of a text, from 0 to 1"
	}
	return true
}

func (numberHead) describe(c *Config, d *Description) {
	d.Schema["answer"] = map[string]any{"type": "number"}
	if c.Opened() || c.Task.Pairs {
		d.Rank = nil
	}
}

func (numberHead) network(m *Model) (network, error) {
	net, err := pooled(m) // (B, 1)
	return regressor{reader{m, net}}, err
}

// A regressor is a network whose output is one number per row, standardised by the rule's Mean and Scale.
type regressor struct{ reader }

// scale returns the number that stands for 1 in the output.
func (r regressor) scale() float64 { return cmp.Or(r.Config.Task.Scale, 1) }

func (r regressor) predictor(s batchShape) (predictor, error) {
	return r.chooser(r, s, func(output []float32, q *query) {
		q.output = []float32{output[0]}
		if !q.keep {
			q.choices, q.output = r.mixed(*q, q.mixture), nil
		}
	})
}

func (r regressor) mixed(q query, x logit.Mixture) []choice {
	return []choice{{number: x.NumberOf(q.output, q.linear)}}
}

// sigmoid reports whether a number is the logistic function of the output.
func (r regressor) sigmoid() bool { return r.published != nil && r.published.model.Sigmoid }

// score returns the number of a choice.
func (r regressor) score(c choice) (float64, error) {
	x := r.Config.Task.Mean + r.scale()*c.number
	if r.sigmoid() {
		return logit.Logistic(x), nil
	}
	return x, logit.CheckFinite(x)
}

// answer rounds the number to about a millionth of the Scale, because more digits mean nothing. A logistic function has
// six digits, so that small scores differ.
func (r regressor) answer(c choice, a *Answer) error {
	x, err := r.score(c)
	if err != nil {
		return err
	}
	step, digits := math.Pow(10, math.Floor(math.Log10(r.scale()))-5), 15 // 15 digits hide that the step isn't exact
	if r.sigmoid() {
		digits = 6
	} else if rounded := math.Round(x/step) * step; rounded-rounded == 0 {
		x = rounded
	}
	if x, err = strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64); err != nil {
		return err
	}
	x += 0 // never -0
	decimal, err := json.Marshal(x)
	a.Text, a.Number = string(decimal), &x
	return err
}
