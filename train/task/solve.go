package task

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/train"
)

// solve trains the head of a model whose other weights don't change. It has the arguments and the result of train.Fit,
// with one check. The head is a linear model of what it reads, so there is no need for epochs. If answers are mixed,
// the linear model is the baseline, which reads n-grams too, and it alone answers. Otherwise it reads only what the
// head reads, and becomes the head.
//
// In a group, only the first process solves the head.
func (t *Task) solve(ctx context.Context, _ train.Problem, _ train.Config, o train.RunOptions) (*train.Result, error) {
	var line []byte
	var err error
	if o.Group == nil || o.Group.Rank() == 0 {
		line, err = t.solveFirst(ctx, o)
	}
	line, err = train.Broadcast(o.Group, line, err)
	var check train.Check
	if err == nil {
		err = json.Unmarshal(line, &check)
	}
	if err != nil {
		return nil, err
	}
	return &train.Result{History: []train.Check{check}, Best: check, StoppedBecause: "the head is solved"}, nil
}

// solveFirst solves the head and returns the check as JSON.
func (t *Task) solveFirst(ctx context.Context, o train.RunOptions) ([]byte, error) {
	if !t.loadedWhole() {
		return nil, fmt.Errorf("the head reads weights that %s doesn't have, such as %.100q: train them, too, with another tune than head", t.Config.From.Dir, t.Loaded.Kept[0])
	}
	solved := t.Linear
	if !t.Config.Mix || solved == nil {
		vectors, err := t.Features()
		if err == nil {
			solved, t.held, err = t.fitLinear(ctx, vectors, true)
		}
		if err != nil {
			return nil, err
		}
	}
	t.setHead(solved.Model)
	check := train.Check{Step: 1, TrainLoss: t.held}
	if t.set.judged() > 0 {
		v, err := t.readValidation(ctx)
		if err != nil {
			return nil, err
		}
		t.chooseMixture(v)
		_, score, err := t.judgeMixed(v)
		if err != nil {
			return nil, err
		}
		check.ValLoss, check.Validated, check.Metrics = score.Loss, true, v.values(t)
	}
	io.WriteString(o.Log, check.String()+"\n")
	if _, err := o.OnCheck([]train.Check{check}, true); err != nil {
		return nil, err
	}
	return json.Marshal(check)
}

// setHead makes the head compute what a linear model computes of a vector alone.
func (t *Task) setHead(m *linear.Model) {
	t.Params.KeepPanels(false)
	weights, bias := m.Layer()
	if q := t.Params.Get("head.bias"); q != nil {
		copy(q.Value.Float32s(), bias)
	}
	values, dim := t.Params.Get("head.weight").Value.Float32s(), t.Config.Model.Dim // (Outputs, Dim)
	for i := range values {
		values[i] = weights[i%dim*m.Outputs()+i/dim]
	}
}
