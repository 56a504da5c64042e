package task

import (
	"cmp"
	"fmt"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers"
)

// maxMemory limits the bytes that leastMemory may return. A larger value is probably a mistake in the settings.
const maxMemory = 8 << 30

// checkMemory returns an error if training needs more than maxMemory by the lowest estimate: an error is better than
// being killed. It runs before the parameters are made. Later, train.Fit estimates the memory from its graphs, and
// compares it with the memory that is free. The argument validation is the size of a validation batch.
func (c *Config) checkMemory(l data.Layout, validation int) error {
	need, what := c.leastMemory(l, validation)
	if need <= maxMemory {
		return nil
	}
	format, paths := "", []any{need / (1 << 30), what, maxMemory >> 30}
	for _, path := range []setting.Path{"model.dim", "model.block.feed_forward.hidden", "model.block.feed_forward.experts", "model.layers"} {
		if c.Model.Block.FeedForward.Experts != nil || path != "model.block.feed_forward.experts" {
			format, paths = format+"%s, ", append(paths, path)
		}
	}
	return setting.Errorf("training would need at least %.3g GiB of memory, for %s; at most %d GiB are allowed: reduce "+format+"%s or %s, or increase %s",
		append(paths, setting.Path("task.max_len"), setting.Path("training.batch_size"), setting.Path("training.micro_batches"))...)
}

// leastMemory returns a low estimate of the bytes that training needs with one worker, whatever the solver, and
// describes what needs them.
func (c *Config) leastMemory(l data.Layout, validation int) (bytes float64, what string) {
	// All numbers are floating-point: products of integers could overflow.
	a := c.Model.Block.Attention
	dim, blocks, classes, length := float64(c.Model.Dim), float64(c.Model.Layers), float64(max(l.Tokens, l.Classes)), float64(max(l.Len, l.TargetLen))
	if l.TargetTokens > 0 { // a decoder too
		blocks += cmp.Or(float64(c.DecoderLayers), blocks)
	}
	whole, hidden := c.Model.HiddenWidths() // of all experts, and of the experts of a token
	width, _ := a.HeadWidth(c.Model.Dim)
	heads := float64(a.Heads) * float64(max(width, a.ValueDim)) // total width
	projections := 4 * dim * heads
	if a.Latent != nil {
		numbers, _ := a.Sizes(c.Model.Dim)
		projections = float64(numbers)
	}
	params := blocks*(projections+2*dim*whole) + (2*classes+length)*float64(c.Model.EmbeddingWidth())
	if c.Model.Shared > 0 {
		params -= float64(c.Model.Layers-c.Model.Shared) * (projections + 2*dim*whole)
	}
	// For one micro-batch, training keeps about half of the values that all blocks compute, because Buffers reuse
	// memory. Validation uses the same memory, and keeps only the values of one block at a time.
	train, validate := float64(c.Training.BatchSize/c.Training.MicroBatches)*length, float64(min(validation, c.Data.Validation))*length
	values := max(train*(blocks*(4*dim+6*heads+2*hidden)+2*classes)/2, validate*(3*dim+max(hidden, 3*heads, 2*classes)))
	what = fmt.Sprintf("%.3g parameters and batches of %.3g tokens", params, max(train, validate))
	if _, ok := c.Model.Positions.(layers.RelativeBias); ok {
		// Each score of each head has a bias, in training and in validation. Each block also has the gradients of the
		// biases.
		values += (blocks + 2) * float64(a.Heads) * length * length
		what += fmt.Sprintf(", with a bias for each of %.3g scores", float64(a.Heads)*length*length)
	}
	return 4 * (3*params + values), what // each parameter has a value, a best value and a gradient
}
