package task

import "cmp"

// fill sets the sizes that are left to the data: 0 of the model and the batch, by how many rows there are to train on
// and how many symbols they have.
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

// plan sets the numbers of steps and epochs that are left to the data, by the steps of an epoch.
func (t *Training) plan(steps int) {
	if t.MaxEpochs < 0 { // few rows take more passes
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
