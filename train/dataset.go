package train

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/text"
)

// A Dataset gives access to examples by their numbers. They may be in memory, or Batch may load or generate them.
type Dataset struct {
	Len int // number of examples, which are numbered from 0

	// Batch makes a batch of the given examples: one tensor for each input of the loss. The tensors may have any shape,
	// but must be stored by rows. They aren't copied, so they must not change until training ends. Batches may share
	// tensors.
	//
	// The same examples must always give the same batch: only then can a run be repeated and resumed. Batch is called
	// in the background, ahead of the step that needs the batch. Within one call of Fit or Evaluate, no two calls of
	// Batch overlap, even if Train and Validation share the function. When training ends, Fit waits for a call in
	// progress.
	//
	// Fit builds a graph for each list of shapes, so pad examples to few different lengths.
	Batch func(examples []int) ([]*tensor.Dense, error)

	// Order is the order of examples in training. In validation, each example is used once, in the order InOrder.
	Order Order

	// Bucket returns the number of the bucket that an example belongs to. All examples of a training step, or of a
	// validation batch, are from one bucket. The number is usually the length that the example is padded to. If Bucket
	// is nil, all examples are in one bucket. It must be nil if Order is Fresh.
	Bucket func(example int) int
}

// An Order says which examples are in an epoch, and in which order.
type Order int

const (
	Shuffled Order = iota // each example once, in an order that depends on the seed and the epoch
	InOrder               // each example once, bucket after bucket, by increasing number

	// Fresh uses new examples in every epoch: epoch e has the examples from e·Len to (e+1)·Len − 1. This suits
	// generated data. Example i may also be a variant of row i%Len, such as a shifted image.
	Fresh
)

// Tensors returns a Dataset whose examples are the rows of tensors, along their first axis: example i is row i of each
// tensor. The dtype of a tensor must be float32, float64, int or bool. A batch has copies of the rows. Batch returns an
// error if an example has no row. The tensors must be stored by rows. They aren't copied, so they must not change.
func Tensors(values ...*tensor.Dense) (Dataset, error) {
	var n int
	for i, v := range values {
		switch {
		case v == nil || v.Dims() == 0 || !ops.InRows(v):
			return Dataset{}, fmt.Errorf("train: tensor %d must have an axis of examples and be stored by rows, got %v", i, describe(v))
		case i > 0 && v.Shape()[0] != n:
			return Dataset{}, fmt.Errorf("train: all tensors must have the same number of rows, got %d in the first and %d in tensor %d", n, v.Shape()[0], i)
		}
		switch v.Dtype() {
		case tensor.Float32, tensor.Float64, tensor.Int, tensor.Bool:
		default:
			return Dataset{}, fmt.Errorf("train: tensor %d: the dtype must be float32, float64, int or bool, got %v", i, v.Dtype())
		}
		n = v.Shape()[0]
	}
	return Dataset{Len: n, Batch: func(examples []int) ([]*tensor.Dense, error) {
		for _, e := range examples {
			if e < 0 || e >= n {
				return nil, fmt.Errorf("the tensors have %s, numbered from 0, but no row %d", text.Count(n, "row"), e)
			}
		}
		var rows []*tensor.Dense
		for _, v := range values {
			rows = append(rows, gather(v, examples))
		}
		return rows, nil
	}}, nil
}

// gather returns a copy of the given rows of a tensor, or nil if rows is empty.
func gather(v *tensor.Dense, rows []int) *tensor.Dense {
	if len(rows) == 0 {
		return nil
	}
	shape := v.Shape().Clone()
	shape[0] = len(rows)
	copied := tensor.New(tensor.WithShape(shape...), tensor.Of(v.Dtype()))
	width := len(v.Raw) / v.Shape()[0] // bytes
	for i, r := range rows {
		copy(copied.Raw[i*width:], v.Raw[r*width:][:width])
	}
	return copied
}

func describe(v *tensor.Dense) string {
	if v == nil {
		return "nil"
	}
	return fmt.Sprintf("%v of shape %v", v.Dtype(), v.Shape())
}

// Steps returns the number of training steps per epoch with the given Config.BatchSize. If batchSize is below 1, it
// counts as 1. The last step of each bucket may have fewer examples.
func (d Dataset) Steps(batchSize int) int {
	batchSize = max(batchSize, 1)
	if d.Bucket == nil {
		return (d.Len-1)/batchSize + 1
	}
	steps, sizes := 0, map[int]int{}
	for i := range d.Len {
		bucket := d.Bucket(i)
		if sizes[bucket]%batchSize == 0 {
			steps++
		}
		sizes[bucket]++
	}
	return steps
}

// check returns an error if a Dataset is invalid. The argument what is the name of the Dataset in the error.
func (d Dataset) check(what string) error {
	switch {
	case d.Len < 1:
		return fmt.Errorf("train: %s needs a Len of 1 example or more, got %d", what, d.Len)
	case d.Order < Shuffled || d.Order > Fresh:
		return fmt.Errorf("train: %s must have an Order of Shuffled, InOrder or Fresh, got %d", what, d.Order)
	case d.Order == Fresh && d.Bucket != nil:
		return fmt.Errorf("train: %s can't have a Bucket if its Order is Fresh", what)
	}
	return nil
}

// A plan divides the examples of a Dataset into steps, epoch by epoch.
type plan struct {
	Dataset
	size    int         // examples per step; fewer at the end of a bucket
	seed    uint64      // seed of the order
	making  *sync.Mutex // locked while Batch is called
	buckets [][]int     // examples of each bucket
	steps   int         // steps per epoch
}

// newPlan puts the examples of a Dataset into buckets. It returns an error if there isn't enough memory for their
// numbers.
func newPlan(d Dataset, size int, seed uint64, making *sync.Mutex) (*plan, error) {
	// The numbers of the examples are stored twice, in the buckets and in the epoch. The epoch also has a slice header
	// for each step.
	if err := memory.Check(memory.Product(d.Len, 16), memory.Product((d.Len-1)/size+1, 24)); err != nil {
		return nil, fmt.Errorf("a Len of %d: %w", d.Len, err)
	}
	p := &plan{Dataset: d, size: size, seed: seed, making: making}
	indices := map[int]int{} // index in p.buckets, by bucket number
	for i := range d.Len {
		key := 0
		if d.Bucket != nil {
			key = d.Bucket(i)
		}
		index, ok := indices[key]
		if !ok {
			index = len(p.buckets)
			indices[key], p.buckets = index, append(p.buckets, nil)
		}
		p.buckets[index] = append(p.buckets[index], i)
	}
	for _, b := range p.buckets {
		p.steps += (len(b)-1)/size + 1
	}
	return p, nil
}

// epoch returns the examples of each step of an epoch.
func (p *plan) epoch(epoch int) [][]int {
	rng := rand.New(rand.NewPCG(p.seed, uint64(epoch)))
	steps := make([][]int, 0, p.steps)
	for _, bucket := range p.buckets {
		bucket = slices.Clone(bucket)
		switch p.Order {
		case Shuffled:
			rng.Shuffle(len(bucket), func(i, j int) { bucket[i], bucket[j] = bucket[j], bucket[i] })
		case Fresh:
			for i := range bucket {
				bucket[i] += epoch * p.Len
			}
		}
		steps = slices.AppendSeq(steps, slices.Chunk(bucket, p.size))
	}
	if p.Order == Shuffled && len(p.buckets) > 1 {
		rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	return steps
}

// largest returns a step of the first epoch and its number: the largest step in the bucket with the highest number.
func (p *plan) largest() (step int, examples []int) {
	steps := p.epoch(0)
	for i := 1; i < len(steps) && p.Bucket != nil; i++ {
		c := cmp.Compare(p.Bucket(steps[i][0]), p.Bucket(steps[step][0]))
		if c > 0 || c == 0 && len(steps[i]) > len(steps[step]) {
			step = i
		}
	}
	return step, steps[step]
}

// between returns the examples of the steps with numbers from step to end − 1, counted over all epochs. If end is 0,
// there is no last step.
func (p *plan) between(step, end int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for epoch, first := step/p.steps, step%p.steps; ; epoch, first = epoch+1, 0 {
			for _, examples := range p.epoch(epoch)[first:] {
				if step++; end > 0 && step > end || !yield(examples) {
					return
				}
			}
		}
	}
}

// A batch holds the inputs for one run of a graph of the loss.
type batch struct {
	values []*tensor.Dense
	weight float64 // the number of examples, until graph.weigh sets it to the loss's Count
}

// batches divides examples into batches of the given size; the last may be smaller.
func (p *plan) batches(examples []int, size int) ([]batch, error) {
	p.making.Lock()
	defer p.making.Unlock()
	var batches []batch
	for part := range slices.Chunk(examples, size) {
		values, err := p.Batch(part)
		if err == nil {
			err = checkValues(values)
		}
		if err != nil {
			return nil, err
		}
		batches = append(batches, batch{values, float64(len(part))})
	}
	return batches, nil
}

// checkValues returns an error if the result of Dataset.Batch is invalid.
func checkValues(values []*tensor.Dense) error {
	if len(values) == 0 {
		return errors.New("it has no tensors: give one for each input of the loss")
	}
	for i, v := range values {
		switch {
		case v == nil || v.Dtype().Type == nil:
			return fmt.Errorf("value %d is nil or an empty tensor: give one tensor for each input of the loss", i)
		case slices.Contains(v.Shape(), 0):
			return fmt.Errorf("value %d: every axis must have a size of at least 1, got %v", i, v.Shape())
		case !ops.InRows(v):
			return fmt.Errorf("value %d must be stored by rows, got a view or a tensor stored by columns, of shape %v: copy its numbers into a new tensor", i, v.Shape())
		}
	}
	return nil
}

// A feed makes batches in the background, a few steps ahead.
type feed struct {
	made chan []batch
	err  error // the error that ended the feed, or nil after the last step
	quit chan struct{}
}

// newFeed calls prepare with the examples of each step. The caller must call stop.
func newFeed(steps iter.Seq[[]int], prepare func(examples []int) ([]batch, error)) *feed {
	f := &feed{made: make(chan []batch, 1), quit: make(chan struct{})}
	go func() {
		defer close(f.made)
		f.err = apart.Call(func() error {
			for examples := range steps {
				batches, err := prepare(examples)
				if err != nil {
					return err
				}
				select {
				case f.made <- batches:
				case <-f.quit:
					return nil
				}
			}
			return nil
		})
	}()
	return f
}

// next returns the batches of the next step, or the error of prepare. If prepare panicked, the error is an
// *apart.Panic.
func (f *feed) next() ([]batch, error) {
	if batches, ok := <-f.made; ok {
		return batches, nil
	}
	return nil, f.err
}

// stop ends the feed, and waits until prepare has returned.
func (f *feed) stop() {
	close(f.quit)
	for range f.made {
	}
}
