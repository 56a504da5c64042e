package task

import "cmp"

// fill sets the sizes of the model and the batch that are 0. The arguments are the number of training rows and of their
// symbols.
func (c *Config) fill(rows, symbols int) {
	m, t := &c.Model, &c.Training
	dim, layers := 64, 2
	switch {
	case symbols > 3_000_000:
		dim, layers = 256, 3
	case symbols > 30_000:
		dim = 128
	}
	batch := 16
	for n := 1000; n < rows && batch < 128; n *= 10 {
		batch *= 2
	}
	m.Dim, m.Layers = cmp.Or(m.Dim, dim), cmp.Or(m.Layers, layers)
	if a := &m.Block.Attention; a.Heads == 0 {
		for a.Heads = max(1, m.Dim/32); m.Dim%a.Heads != 0; a.Heads-- {
		}
	}
	t.BatchSize = cmp.Or(t.BatchSize, batch)
}

// plan sets MaxEpochs, Decay and WarmUp if they are negative. The argument steps is the number of steps per epoch.
func (t *Training) plan(steps int) {
	if t.MaxEpochs < 0 { // fewer rows need more passes
		t.MaxEpochs = min(max(15, 3000/steps), 100)
	}
	schedule := &t.Optimizer.Schedule
	if schedule.Decay < 0 {
		schedule.Decay = t.MaxEpochs * steps
	}
	if schedule.WarmUp < 0 {
		schedule.WarmUp = min(1000, max(schedule.Decay, 15*steps)/20)
	}
}
