package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/heed-go/heed/layers"
)

// Evaluate judges a Problem's parameters by its Validation: it returns the mean loss, as val_loss, and the metrics, as
// val_accuracy. A loss that isn't finite is a value like any other. Train isn't needed, and of BatchSize and
// ValidationSize only one.
func Evaluate(ctx context.Context, p Problem) (map[string]float64, error) {
	if ctx == nil {
		return nil, errors.New("train: the context is nil: pass context.Background()")
	}
	p.BatchSize = cmp.Or(p.BatchSize, p.ValidationSize)
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Validation.Len == 0 {
		return nil, errors.New("train: there is nothing to evaluate by: the Problem has no Validation")
	}
	v, err := newValidation(p, &worker{build: layers.Build{Buffers: &layers.Buffers{}}}, new(sync.Mutex))
	if err != nil {
		return nil, err
	}
	s, err := v.run(ctx, 0, true)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{"val_loss": s.loss()}
	s.note(values, "val_", v.worker.graphs[0].metrics)
	return values, nil
}

// validation judges parameters by a Dataset.
type validation struct {
	plan   *plan
	worker *worker
}

// newValidation builds a graph for the first batch. It must be like the first of a worker, if that has one, and has its
// memory, so that it must not run while the worker does.
func newValidation(p Problem, of *worker, making *sync.Mutex) (*validation, error) {
	d := p.Validation
	d.Order = InOrder
	v := &validation{
		plan:   newPlan(d, cmp.Or(p.ValidationSize, p.BatchSize), 0, making),
		worker: &worker{problem: p, build: layers.Build{Buffers: of.build.Buffers}, first: of.first},
	}
	batches, err := v.plan.batches(v.plan.epoch(0)[0], v.plan.size)
	if err != nil {
		return nil, fmt.Errorf("train: validation batch 0: %w", err)
	}
	if _, err := v.worker.graph(batches[0]); err != nil {
		return nil, fmt.Errorf("train: validation: %w", err)
	}
	return v, nil
}

// run returns the sums of all batches. The epoch is for errors.
func (v *validation) run(ctx context.Context, epoch int, allowNonFinite bool) (sums, error) {
	batches := newFeed(v.plan.between(0, v.plan.steps), func(examples []int) ([]Batch, error) { return v.plan.batches(examples, v.plan.size) })
	defer batches.stop()
	var total sums
	for i := range v.plan.steps {
		if err := ctx.Err(); err != nil {
			return sums{}, err
		}
		b, err := batches.next()
		if err != nil {
			return sums{}, fmt.Errorf("train: validation batch %d: %w", i, err)
		}
		_, s, err := v.worker.run(0, b[0], 1)
		if err != nil {
			return sums{}, fmt.Errorf("train: validation batch %d of epoch %d: %w", i, epoch, err)
		}
		if b[0].Weight > 0 && !finite(s.loss()) && !allowNonFinite {
			return sums{}, &NonFiniteError{Epoch: epoch, Step: i, Validation: true, Loss: s.loss()}
		}
		total.add(s)
	}
	if total.Weight == 0 {
		return sums{}, errors.New("train: every validation batch has a Weight of 0: set it to how many targets count")
	}
	return total, nil
}
