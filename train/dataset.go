package train

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/text"
)

// A Batch is what a graph of the loss is fed at once.
type Batch struct {
	// Values has one tensor for each input of the loss, of any shape but stored by rows. They aren't copied: they must
	// stay as they are until training ends, and may be shared by batches.
	Values []*tensor.Dense

	// Weight is that of the batch's mean loss in the mean of an epoch and, where a step has several micro-batches, in
	// the mean of the step: as a rule, the number of targets. It may be 0, where nothing in the batch counts, as long
	// as something in its step does or, of a validation batch, something in the validation data.
	Weight float64
}

// A Dataset is examples by number, in memory or wherever Batch finds them.
type Dataset struct {
	Len int // examples, numbered from 0

	// Batch makes a batch of some examples. The same ones must give the same batch, whenever it is asked for: that
	// makes a run repeatable, and lets it resume. It is called in the background, ahead of the step that needs the
	// batch. One call of Fit or Evaluate never calls it from two goroutines at once, also where Train and Validation
	// share it. A call that is under way when training ends is waited for.
	//
	// A graph is built for each list of shapes that batches have. So pad to few lengths.
	Batch func(examples []int) (Batch, error)

	// Order is that of training. Validation takes every example once, by their numbers.
	Order Order

	// Bucket says which examples go together: those of a step, and of a validation batch, are of one bucket. As a rule
	// it is the length that an example is padded to. nil puts all into one. It must be nil where the Order is Fresh.
	Bucket func(example int) int
}

// An Order says which examples an epoch trains on, and in which order.
type Order int

const (
	Shuffled Order = iota // each once, in an order that the seed and the epoch decide
	InOrder               // each once, by their numbers, bucket after bucket

	// Fresh has none that an epoch before it had: the numbers of examples count on from one epoch to the next, as of
	// data that are generated. Example i may also be a variant of row i%Len, as of images that are moved.
	Fresh
)

// Tensors returns the Dataset of examples that lie along the first axis of tensors of float32, float64, int or bool:
// example i is row i of each. The Values of a batch are their rows, copied, and its Weight is how many there are. A
// number that has no row is an error of Batch. The tensors must be stored by rows and aren't copied: they must stay as
// they are.
func Tensors(values ...*tensor.Dense) (Dataset, error) {
	var n int
	for i, v := range values {
		switch {
		case v == nil || v.Dims() == 0 || !ops.InRows(v):
			return Dataset{}, fmt.Errorf("train: tensor %d must have an axis of examples and be stored by rows, got %v", i, describe(v))
		case i > 0 && v.Shape()[0] != n:
			return Dataset{}, fmt.Errorf("train: tensors must have a row for each example, got %d rows in the first and %d in tensor %d", n, v.Shape()[0], i)
		}
		if _, err := gather(v, nil); err != nil {
			return Dataset{}, fmt.Errorf("train: tensor %d: %w", i, err)
		}
		n = v.Shape()[0]
	}
	return Dataset{Len: n, Batch: func(examples []int) (Batch, error) {
		for _, e := range examples {
			if e < 0 || e >= n {
				return Batch{}, fmt.Errorf("the tensors have %s, numbered from 0, and none of number %d", text.Count(n, "row"), e)
			}
		}
		b := Batch{Weight: float64(len(examples))}
		for _, v := range values {
			rows, err := gather(v, examples)
			if err != nil {
				return Batch{}, err
			}
			b.Values = append(b.Values, rows)
		}
		return b, nil
	}}, nil
}

// gather returns a copy of some rows of a tensor; nil if there are none.
func gather(v *tensor.Dense, rows []int) (*tensor.Dense, error) {
	width := v.Shape().TotalSize() / v.Shape()[0]
	var data any
	switch of := v.Data().(type) {
	case []float32:
		data = pick(of, rows, width)
	case []float64:
		data = pick(of, rows, width)
	case []int:
		data = pick(of, rows, width)
	case []bool:
		data = pick(of, rows, width)
	default:
		return nil, fmt.Errorf("it must be of float32, float64, int or bool, got %v", v.Dtype())
	}
	if len(rows) == 0 {
		return nil, nil
	}
	shape := v.Shape().Clone()
	shape[0] = len(rows)
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data)), nil
}

// pick returns the rows of a width with these numbers, one after the other.
func pick[T any](of []T, rows []int, width int) []T {
	out := make([]T, 0, len(rows)*width)
	for _, r := range rows {
		out = append(out, of[r*width:][:width]...)
	}
	return out
}

func describe(v *tensor.Dense) string {
	if v == nil {
		return "nil"
	}
	return fmt.Sprintf("%v of shape %v", v.Dtype(), v.Shape())
}

// check checks what is needed of a Dataset that has examples.
func (d Dataset) check(what string) error {
	switch {
	case d.Len < 1:
		return fmt.Errorf("train: %s needs a Len of 1 example or more, got %d", what, d.Len)
	case d.Order < Shuffled || d.Order > Fresh:
		return fmt.Errorf("train: %s must have an Order of Shuffled, InOrder or Fresh, got %d", what, d.Order)
	case d.Order == Fresh && d.Bucket != nil:
		return fmt.Errorf("train: %s can't have a Bucket where every epoch has examples of its own", what)
	}
	return nil
}

// A plan says which examples of a Dataset are taken together, epoch by epoch.
type plan struct {
	Dataset
	size    int         // examples that are taken together; fewer at the end of a bucket
	seed    uint64      // of the order
	making  *sync.Mutex // held while Batch is called
	buckets [][]int     // the examples of each
	steps   int         // in an epoch
}

// newPlan finds the buckets of a Dataset, unless there is no memory for as many examples.
func newPlan(d Dataset, size int, seed uint64, making *sync.Mutex) (*plan, error) {
	// Their numbers are in the buckets and again in an epoch, of which each step is a slice.
	if err := memory.Check(memory.Product(d.Len, 16), memory.Product((d.Len-1)/size+1, 24)); err != nil {
		return nil, fmt.Errorf("a Len of %d: %w", d.Len, err)
	}
	p := &plan{Dataset: d, size: size, seed: seed, making: making}
	places := map[int]int{} // of buckets
	for i := range d.Len {
		key := 0
		if d.Bucket != nil {
			key = d.Bucket(i)
		}
		at, ok := places[key]
		if !ok {
			at = len(p.buckets)
			places[key], p.buckets = at, append(p.buckets, nil)
		}
		p.buckets[at] = append(p.buckets[at], i)
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

// largest returns the longest step of the first epoch that takes examples of the bucket of the largest number.
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

// between returns the examples of each step from one on, counted over all epochs, up to another one; 0 is for no end.
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

// batches makes the batches of some examples, of a size but for the last.
func (p *plan) batches(examples []int, size int) ([]Batch, error) {
	p.making.Lock()
	defer p.making.Unlock()
	var batches []Batch
	for part := range slices.Chunk(examples, size) {
		b, err := p.Batch(part)
		if err != nil {
			return nil, err
		}
		if err := b.check(); err != nil {
			return nil, err
		}
		batches = append(batches, b)
	}
	return batches, nil
}

// check checks what Dataset's Batch returned.
func (b Batch) check() error {
	if len(b.Values) == 0 {
		return errors.New("it must have Values")
	}
	for i, v := range b.Values {
		switch {
		case v == nil || v.Dtype().Type == nil:
			return fmt.Errorf("value %d is nil or an empty tensor: there must be one for each input of the loss", i)
		case slices.Contains(v.Shape(), 0):
			return fmt.Errorf("value %d: every axis must have a size of at least 1, got %v", i, v.Shape())
		case !ops.InRows(v):
			return fmt.Errorf("value %d must be stored by rows, got a view or a tensor stored by columns, of shape %v: copy its numbers into a new tensor", i, v.Shape())
		}
	}
	if !(b.Weight >= 0) || math.IsInf(b.Weight, 1) {
		return fmt.Errorf("its Weight must be at least 0 and finite, got %v: set it to how many targets count", b.Weight)
	}
	return nil
}

// A feed is batches that are made in the background, a few steps ahead.
type feed struct {
	made chan []Batch
	err  error // why no more are made
	quit chan struct{}
}

// newFeed calls prepare on the examples of step after step. The caller has to stop it.
func newFeed(steps iter.Seq[[]int], prepare func(examples []int) ([]Batch, error)) *feed {
	f := &feed{made: make(chan []Batch, 1), quit: make(chan struct{})}
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

// next returns the batches of the next step, or why there are none: a panic is an *apart.Panic.
func (f *feed) next() ([]Batch, error) {
	if batches, ok := <-f.made; ok {
		return batches, nil
	}
	return nil, f.err
}

// stop ends the feed. When it returns, nothing is being made.
func (f *feed) stop() {
	close(f.quit)
	for range f.made {
	}
}
