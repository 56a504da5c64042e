package task

import (
	"cmp"
	"strings"
)

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

// plan sets MaxEpochs, Decay, WarmUp, CheckEvery, Patience and MinDelta if they are negative. The argument steps is the
// number of steps per epoch.
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
	patience := 5
	if t.CheckEvery < 0 {
		t.CheckEvery = 0
		if steps > longEpoch {
			t.CheckEvery, patience = steps/10, 10*patience
		}
	}
	stopping := &t.Stopping
	if stopping.Patience < 0 {
		stopping.Patience = patience
	}
	if stopping.MinDelta < 0 {
		stopping.MinDelta = 0
		if name := stopping.Monitor; name == "" || strings.HasSuffix(name, "loss") {
			stopping.MinDelta = lossDelta
		}
	}
}

const (
	longEpoch = 2000 // if an epoch has more steps, there are also checks within it

	// lossDelta is the MinDelta for a loss. The loss of the kept weights is at most this much above the lowest loss. If
	// the data are easy, all answers are soon right, but the loss goes on falling, ever more slowly, for many epochs.
	lossDelta = 1e-4
)
