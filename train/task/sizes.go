package task

import (
	"cmp"
	"strings"

	"github.com/heed-go/heed/internal/setting"
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

// divide sets the number of micro-batches, if it is 0.
func (c *Config) divide(k facts) {
	t := &c.Training
	if t.MicroBatches > 0 {
		return
	}
	switch {
	case k.micro > 0:
		t.MicroBatches = k.micro
	case k.format != nil && c.Published() && c.From.Tune != "head" && c.From.Tune != "lora":
		t.MicroBatches = 2
	default:
		t.MicroBatches = 4
	}
	for t.BatchSize%t.MicroBatches != 0 {
		t.MicroBatches /= 2
	}
}

// planPass sets the settings that depend on the number of steps of one pass over the file, which is an epoch.
func (c *Config) planPass(steps int) error {
	t := &c.Training
	if t.StepsPerEpoch = cmp.Or(t.StepsPerEpoch, steps); t.StepsPerEpoch != steps {
		return setting.Errorf("%s must be %d, one pass over the file, or 0 to choose it, got %d: to check more often, set %s", setting.Path("training.steps_per_epoch"), steps, t.StepsPerEpoch, setting.Path("training.check_every"))
	}
	if c.Published() && t.MaxEpochs < 0 { // fewer than for a new model
		limit := 20
		t.MaxEpochs = min(max(3, 300/steps), limit)
	}
	t.plan(steps)
	return nil
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
