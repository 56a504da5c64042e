package model

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/apart"
)

// query returns the query of a batch of one row.
func (m *Model) query(b data.Batch) query {
	n := b.Lengths[0]
	q := query{ids: slices.Clone(b.Inputs[:n])}
	if m.Config.about().aligned && m.Config.Task.Target != nil && !m.Config.Drawn() {
		q.targets = slices.Clone(b.Targets[:n])
	}
	return q
}

// choose sets the choices of rows. It reorders the rows.
func (m *Model) choose(ctx context.Context, rows []query, beam int) error {
	// Sort by ids only, so that batches don't depend on the order of the inputs.
	slices.SortFunc(rows, func(a, b query) int {
		return cmp.Or(cmp.Compare(len(b.ids), len(a.ids)), slices.Compare(a.ids, b.ids))
	})
	var batches [][]query
	var shapes []batchShape
	for len(rows) > 0 {
		s := m.shapeOf(rows, beam)
		n := min(s.size, len(rows))
		batches, shapes, rows = append(batches, rows[:n]), append(shapes, s), rows[n:]
	}
	workers := min(runtime.GOMAXPROCS(0), len(batches))
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var mu sync.Mutex
	read, inputs := 0, 0
	for _, batch := range batches {
		inputs += len(batch)
	}
	work := func() error {
		for within.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(batches) {
				return nil
			}
			if workers > 1 {
				shapes[i].cores = 1
			}
			if err := m.predict(within, shapes[i], batches[i]); err != nil {
				return err
			}
			if m.Progress != nil {
				mu.Lock()
				read += len(batches[i])
				m.Progress(read, inputs)
				mu.Unlock()
			}
		}
		return nil
	}
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			if err := apart.Call(work); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	failed := context.Cause(within) // the first error
	apart.Repanic(failed)
	return cmp.Or(ctx.Err(), failed)
}

// shapeOf returns the shape of the next batch, which has the first rows. The longest row must be the first. There are
// only a few different shapes, because each needs its own predictor.
func (m *Model) shapeOf(rows []query, beam int) batchShape {
	width := 8
	for width < len(rows[0].ids) {
		width *= 2
	}
	if step := max(4, width/8); len(rows[0].ids) > 8 {
		width = (len(rows[0].ids) + step - 1) / step * step
	}
	s := batchShape{width: min(width, m.layout.Len), beam: beam, size: 1}
	limit := batchTokens / (beam * max(s.width, m.layout.TargetLen))
	for s.size < min(len(rows), limit) {
		s.size *= 2
	}
	return s
}

// predict sets the choices of rows with a free predictor of the given shape, or with a new one.
func (m *Model) predict(ctx context.Context, s batchShape, rows []query) (err error) {
	predict := m.free.take(s)
	if predict == nil {
		if predict, err = m.Network.predictor(s); err != nil {
			return err
		}
	}
	if err := predict(ctx, rows); err != nil {
		return err
	}
	m.free.leave(freePredictor{s, predict, s.size * s.beam * max(s.width, m.layout.TargetLen)})
	return nil
}
