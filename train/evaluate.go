package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/layers"
)

// Evaluate judges a Problem's parameters by its Validation, and needs no Train. It returns the mean loss, as val_loss,
// and the metrics, as val_accuracy. A loss that isn't finite is a value like any other. Panics are passed on as Fit
// does.
func Evaluate(ctx context.Context, p Problem) (map[string]float64, error) {
	p.ValidationSize = cmp.Or(p.ValidationSize, 64)
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Validation.Len == 0 {
		return nil, errors.New("train: there is nothing to evaluate by: the Problem has no Validation")
	}
	v, err := newValidation(p, &team{size: 1, ctx: ctx}, &worker{build: layers.Build{Buffers: &layers.Buffers{}}}, new(sync.Mutex))
	if err != nil {
		return nil, err
	}
	s, err := v.run(ctx, 0, true)
	apart.Repanic(err)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{"val_loss": s.loss()}
	s.note(values, "val_", v.worker.graphs[0].metrics)
	return values, nil
}

// validation judges parameters by a Dataset.
type validation struct {
	team   *team
	plan   *plan
	worker *worker
}

// newValidation builds a graph for the first batch. It must be like the first of a worker, if that has one, and has its
// memory, so that it must not run while the worker does.
func newValidation(p Problem, team *team, of *worker, making *sync.Mutex) (*validation, error) {
	d := p.Validation
	d.Order = InOrder
	plan, err := newPlan(d, p.ValidationSize, 0, making)
	if err != nil {
		return nil, fmt.Errorf("train: Validation: %w", err)
	}
	v := &validation{
		team:   team,
		plan:   plan,
		worker: &worker{problem: p, build: layers.Build{Buffers: of.build.Buffers}, first: of.first},
	}
	step, examples := v.plan.largest()
	batches, err := v.plan.batches(examples, v.plan.size)
	if err != nil {
		return nil, fmt.Errorf("train: validation batch %d: %w", step, err)
	}
	if _, err := v.worker.graph(batches[0]); err != nil {
		return nil, fmt.Errorf("train: validation: %w", err)
	}
	return v, nil
}

// run returns the sums of all batches, which the processes take in turn. The epoch is for errors.
func (v *validation) run(ctx context.Context, epoch int, allowNonFinite bool) (sums, error) {
	own, err := v.own(ctx, epoch, allowNonFinite)
	each := 2 + 2*len(v.worker.graphs[0].metrics)
	numbers := make([]float64, 0, ((v.plan.steps-1)/v.team.size+1)*each)
	for _, s := range own {
		numbers = s.append(numbers)
	}
	all, err := v.team.agree(numbers[:cap(numbers)], err)
	if err != nil {
		return sums{}, err
	}
	var total sums
	for i := range v.plan.steps { // in their order, whoever took them
		s := sumsOf(all[i%v.team.size*cap(numbers)+i/v.team.size*each:][:each])
		if s.diverged() && !allowNonFinite {
			return sums{}, &NonFiniteError{Epoch: epoch, Step: i, Validation: true, Loss: s.loss()}
		}
		total.add(s)
	}
	if total.Weight == 0 {
		return sums{}, errors.New("train: every validation batch has a Weight of 0: set it to how many targets count")
	}
	return total, nil
}

// own returns the sums of each of this process's batches, up to the first whose loss isn't finite where that isn't
// allowed.
func (v *validation) own(ctx context.Context, epoch int, allowNonFinite bool) ([]sums, error) {
	steps := func(yield func([]int) bool) {
		i := 0
		for examples := range v.plan.between(0, v.plan.steps) {
			if i%v.team.size == v.team.rank && !yield(examples) {
				return
			}
			i++
		}
	}
	batches := newFeed(steps, func(examples []int) ([]Batch, error) { return v.plan.batches(examples, v.plan.size) })
	defer batches.stop()
	var own []sums
	for i := v.team.rank; i < v.plan.steps; i += v.team.size {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := batches.next()
		if err != nil {
			return nil, fmt.Errorf("train: validation batch %d: %w", i, err)
		}
		_, s, err := v.worker.run(0, b[0], 1)
		if err != nil {
			return nil, fmt.Errorf("train: validation batch %d of epoch %d: %w", i, epoch, err)
		}
		own = append(own, s)
		if s.diverged() && !allowNonFinite {
			break
		}
	}
	return own, nil
}
