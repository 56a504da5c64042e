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

// Evaluate computes the loss and the metrics of the parameters of p over p.Validation. It doesn't use p.Train. The
// result has the mean loss as val_loss, and metrics under names such as val_accuracy. A loss that isn't finite is not
// an error. Panics are handled as in Fit.
func Evaluate(ctx context.Context, p Problem) (map[string]float64, error) {
	p.ValidationSize = cmp.Or(p.ValidationSize, 64)
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Validation.Len == 0 {
		return nil, errors.New("train: Evaluate needs validation data: the Problem has none")
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

// validation computes the loss and the metrics of a Dataset.
type validation struct {
	team   *team
	plan   *plan
	worker *worker
}

// newValidation builds a graph for the largest validation batch. Its worker uses the same memory as trainer, so the two
// must not run at the same time. If trainer has a first graph, the new graph must have the same metrics.
func newValidation(p Problem, team *team, trainer *worker, making *sync.Mutex) (*validation, error) {
	d := p.Validation
	d.Order = InOrder
	plan, err := newPlan(d, p.ValidationSize, 0, making)
	if err != nil {
		return nil, fmt.Errorf("train: Validation: %w", err)
	}
	v := &validation{
		team:   team,
		plan:   plan,
		worker: &worker{problem: p, build: layers.Build{Buffers: trainer.build.Buffers}, first: trainer.first},
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

// mostNumbers is the number of sums after which the processes exchange them, so that long vectors don't fill memory.
const mostNumbers = 1 << 20

// run returns the sums over all batches, which the processes of a Group divide among themselves. The argument epoch is
// for errors.
func (v *validation) run(ctx context.Context, epoch int, allowNonFinite bool) (sums, error) {
	batches := newFeed(v.examples, func(examples []int) ([]batch, error) { return v.plan.batches(examples, v.plan.size) })
	defer batches.stop()
	metrics := v.worker.graphs[0].metrics
	each := length(metrics)
	perExchange := v.team.size * max(1, mostNumbers/each) // batches between exchanges
	var total sums
	for first := 0; first < v.plan.steps; first += perExchange {
		n := min(perExchange, v.plan.steps-first)
		own, err := v.own(ctx, batches, epoch, first, n, allowNonFinite)
		numbers := make([]float64, 0, ((n-1)/v.team.size+1)*each)
		for _, s := range own {
			numbers = s.append(numbers)
		}
		gathered, err := v.team.agree(numbers[:cap(numbers)], err)
		if err != nil {
			return sums{}, err
		}
		for i := range n { // in the order of the batches, whichever process ran them
			s := sumsOf(gathered[i%v.team.size*cap(numbers)+i/v.team.size*each:][:each], metrics)
			if s.diverged() && !allowNonFinite {
				return sums{}, &NonFiniteError{Epoch: epoch, Step: first + i, Validation: true, Loss: s.loss()}
			}
			total.add(s)
		}
	}
	if total.Weight == 0 {
		return sums{}, errors.New("train: no target counts in validation: the Count of the loss is 0 in every batch")
	}
	return total, nil
}

// examples yields the examples of each batch of this process.
func (v *validation) examples(yield func([]int) bool) {
	i := 0
	for examples := range v.plan.between(0, v.plan.steps) {
		if i%v.team.size == v.team.rank && !yield(examples) {
			return
		}
		i++
	}
}

// own returns the sums of this process's batches among the n batches from number first on. Without allowNonFinite, it
// ends with the first batch whose loss isn't finite.
func (v *validation) own(ctx context.Context, batches *feed, epoch, first, n int, allowNonFinite bool) ([]sums, error) {
	var own []sums
	for i := first + v.team.rank; i < first+n; i += v.team.size {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := batches.next()
		if err != nil {
			return nil, fmt.Errorf("train: validation batch %d: %w", i, err)
		}
		var s sums
		if err = v.worker.weigh(&b[0]); err == nil {
			_, s, err = v.worker.run(0, b[0], 1)
		}
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
