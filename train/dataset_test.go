package train_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// noted returns a Dataset that appends the examples of each batch to batches.
func noted(d train.Dataset, batches *[][]int) train.Dataset {
	return changed(d, func(examples []int, _ []*tensor.Dense) { *batches = append(*batches, slices.Clone(examples)) })
}

// once checks that each of the n examples from number first on is in exactly one batch.
func once(t *testing.T, batches [][]int, first, n int) {
	t.Helper()
	examples := slices.Sorted(slices.Values(slices.Concat(batches...)))
	for i, e := range examples {
		if e != first+i {
			break
		}
		if i == n-1 && len(examples) == n {
			return
		}
	}
	t.Errorf("the examples are %v, want each of the %d examples from %d on once", examples, n, first)
}

// An epoch uses each example once, even if the number of examples isn't a multiple of the sizes of batches and
// micro-batches.
func TestEveryExampleOnce(t *testing.T) {
	for _, c := range []struct{ n, batch, micro, validation, size int }{{23, 5, 1, 7, 3}, {23, 6, 3, 7, 0}, {24, 8, 4, 8, 8}, {3, 8, 2, 1, 4}, {1, 1, 1, 1, 1}} {
		for _, order := range []train.Order{train.Shuffled, train.InOrder, train.Fresh} {
			var trained, validated [][]int
			p := digits(t, 1)
			p.Train, p.Validation = noted(drawn(c.n, 1), &trained), noted(drawn(c.validation, 2), &validated)
			p.Train.Order = order
			p.ValidationSize = c.size
			fitted(t, p, train.Config{BatchSize: c.batch, MicroBatches: c.micro, MaxEpochs: 2}, train.RunOptions{})
			trained, validated = trained[1:], validated[1:] // without the first batch, which is used to build a graph
			each := (c.n-1)/(c.batch/c.micro) + 1
			if c.n > c.batch && c.n%c.batch == 0 {
				each = c.n / (c.batch / c.micro)
			}
			if len(trained) != 2*each {
				t.Fatalf("%+v: got %d batches, want %d", c, len(trained), 2*each)
			}
			second := 0
			if order == train.Fresh {
				second = c.n
			}
			once(t, trained[:each], 0, c.n)
			once(t, trained[each:], second, c.n)
			once(t, validated[:len(validated)/2], 0, c.validation)
			for _, b := range trained {
				if order != train.Shuffled && !slices.IsSorted(b) || len(b) > c.batch/c.micro {
					t.Errorf("%+v: got a batch of examples %v, want at most %d, and in order unless they are shuffled", c, b, c.batch/c.micro)
				}
			}
		}
	}
}

func TestOrder(t *testing.T) {
	run := func(seed uint64) [][]int {
		var batches [][]int
		p := digits(t, 1)
		p.Train, p.Validation.Len = noted(drawn(64, 1), &batches), 0
		p.Train.Order = train.Shuffled
		fitted(t, p, train.Config{BatchSize: 16, MaxEpochs: 2}, train.RunOptions{Seed: seed})
		return batches[1:]
	}
	one := run(1)
	if !reflect.DeepEqual(one, run(1)) {
		t.Error("two runs with the same seed have examples in different orders")
	}
	if reflect.DeepEqual(one[:4], one[4:]) || reflect.DeepEqual(one, run(2)) || slices.IsSorted(slices.Concat(one[:4]...)) {
		t.Errorf("got batches %v, want another order in each epoch and for each seed", one)
	}
}

// Each batch has examples of one bucket, and each example is in one batch.
func TestBuckets(t *testing.T) {
	var trained, validated [][]int
	p := digits(t, 1)
	p.Train, p.Validation = noted(drawn(50, 1), &trained), noted(drawn(20, 2), &validated)
	p.Train.Order = train.Shuffled
	p.Train.Bucket = func(e int) int { return e % 3 }
	p.Validation.Order, p.Validation.Bucket = train.Shuffled, func(e int) int { return e * e % 5 }
	p.ValidationSize = 7
	fitted(t, p, train.Config{BatchSize: 8, MicroBatches: 2, MaxEpochs: 1}, train.RunOptions{})
	once(t, trained[1:], 0, 50)
	once(t, validated[1:], 0, 20)
	for _, set := range []struct {
		batches [][]int
		bucket  func(int) int
	}{{trained, p.Train.Bucket}, {validated, p.Validation.Bucket}} {
		for _, b := range set.batches {
			if slices.ContainsFunc(b, func(e int) bool { return set.bucket(e) != set.bucket(b[0]) }) {
				t.Errorf("a batch has examples of two buckets: %v", b)
			}
		}
	}
	for _, b := range validated {
		if !slices.IsSorted(b) {
			t.Errorf("validation batch has examples %v, want them in increasing order", b)
		}
	}
	var order []int
	for _, b := range trained[1:] {
		order = append(order, b[0]%3)
	}
	if slices.IsSorted(order) {
		t.Errorf("the buckets of the steps are %v, want them shuffled", order)
	}
	trained = nil
	p.Train.Order = train.InOrder
	fitted(t, p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{})
	if examples := slices.Concat(trained[1:]...); !slices.IsSortedFunc(examples, func(a, b int) int { return cmp.Or(a%3-b%3, a-b) }) {
		t.Errorf("with the order InOrder, the examples are %v, want bucket after bucket", examples)
	}
}

// After Batch has failed, Fit doesn't call it again.
func TestBatchFails(t *testing.T) {
	p := digits(t, 1)
	broken := errors.New("broken")
	var failed, after atomic.Int32
	batch := p.Train.Batch
	p.Train.Batch = func(examples []int) ([]*tensor.Dense, error) {
		after.Add(failed.Load())
		if examples[0] == 48 {
			failed.Store(1)
			return nil, broken
		}
		return batch(examples)
	}
	_, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "batch of epoch 0, step 3: broken") || after.Load() > 0 {
		t.Errorf("got %v and %d more calls of Batch, want an error with epoch 0, step 3, and no call", err, after.Load())
	}
}

// The elements of a value must be stored as its shape says, because ops read them directly.
func TestBatchValues(t *testing.T) {
	x := tensor.New(tensor.WithShape(16, 8), tensor.Of(tensor.Float32))
	view := must.Get(x.Slice(nil, tensor.S(2, 6)))(t)
	turned := tensor.New(tensor.WithShape(4, 16), tensor.Of(tensor.Float32))
	must.Do(t, turned.T())
	rows := must.Get(tensor.New(tensor.WithShape(20, 4), tensor.Of(tensor.Float32)).Slice(tensor.S(2, 18)))(t)
	for name, c := range map[string]struct {
		value *tensor.Dense
		want  string
	}{
		"rows of a tensor":    {rows.(*tensor.Dense), ""},
		"columns of a tensor": {view.(*tensor.Dense), "value 0 must be stored by rows"},
		"transposed":          {turned, "value 0 must be stored by rows"},
		"by columns":          {tensor.New(tensor.WithShape(16, 4), tensor.AsFortran(make([]float32, 64))), "value 0 must be stored by rows"},
		"no rows":             {tensor.New(tensor.WithShape(0, 4), tensor.Of(tensor.Float32)), "value 0: every axis must have a size of at least 1, got (0, 4)"},
		"empty":               {new(tensor.Dense), "value 0 is nil or an empty tensor"},
	} {
		p := digits(t, 1)
		p.Train.Len, p.Validation.Len = 16, 0
		p.Train = changed(p.Train, func(_ []int, values []*tensor.Dense) { values[0] = c.value })
		wantError(t, name, failure(train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{})), c.want)
	}
}

// Loss may turn off dropout by setting Training of its Build. Fit then still computes gradients.
func TestLossMaySetTraining(t *testing.T) {
	fit := func(dropout float64, training bool) [][]float32 {
		p := digitsWith(t, 1, dropout)
		beforeLoss(&p, func(b *layers.Build, _ G.Nodes) { b.Training = training })
		fitted(t, p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{})
		return values(p.Params)
	}
	if got := fit(0.1, false); !same(got, fit(0, true)) || same(got, values(digits(t, 1).Params)) {
		t.Error("with Training false, Fit doesn't learn the same as with a dropout of 0")
	}
}

// Loss may change its list of inputs.
func TestLossMayReplaceInputs(t *testing.T) {
	p := digits(t, 1)
	beforeLoss(&p, func(_ *layers.Build, inputs G.Nodes) { inputs[0] = G.Must(G.Neg(inputs[0])) })
	fitted(t, p, train.Config{BatchSize: 16}, train.RunOptions{MaxSteps: 1})
}

// No two calls of Batch overlap, and none is running when Fit has returned.
func TestBatchesInTheBackground(t *testing.T) {
	var making, peak, calls atomic.Int32
	watch := func(d train.Dataset) train.Dataset {
		batch := d.Batch
		d.Batch = func(examples []int) ([]*tensor.Dense, error) {
			peak.Store(max(peak.Load(), making.Add(1)))
			defer making.Add(-1)
			calls.Add(1)
			time.Sleep(time.Millisecond)
			return batch(examples)
		}
		return d
	}
	broken := errors.New("broken")
	for _, end := range []int{0, 1} {
		p := digits(t, 1)
		p.Train, p.Validation = watch(p.Train), watch(p.Validation)
		if end > 0 { // with validation, the next batches might all be made before the end
			p.Validation.Len = 0
		}
		_, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, CheckEvery: 1, MaxEpochs: 1}, train.RunOptions{OnCheck: failAt(end, broken)})
		if (end > 0) != errors.Is(err, broken) {
			t.Fatal(err)
		}
		under, before := making.Load(), calls.Load()
		time.Sleep(5 * time.Millisecond)
		if under != 0 || peak.Load() != 1 || calls.Load() != before {
			t.Errorf("up to %d calls of Batch overlap, %d began after Fit returned, and %d were running then, want 1, 0 and 0", peak.Load(), calls.Load()-before, under)
		}
	}
}

// metered is digits with the metrics that the function metrics returns. Its arguments are the loss, the mean of the
// inputs and a constant count.
func metered(t *testing.T, metrics func(loss, mean, count *G.Node) []train.Metric) train.Problem {
	p := digitsWith(t, 1, 0)
	p.Loss = added(p.Loss, func(b *layers.Build, inputs G.Nodes, loss *G.Node) (*G.Node, []train.Metric) {
		mean := G.Must(G.Mean(inputs[0]))
		count := G.NewScalar(inputs[0].Graph(), tensor.Float32, G.WithName("count"), G.WithValue(float32(2)))
		b.Fixed = append(b.Fixed, count)
		return loss, metrics(loss, mean, count)
	})
	return p
}

// Steps returns the number of steps that Fit takes in an epoch.
func TestSteps(t *testing.T) {
	for name, bucket := range map[string]func(int) int{"one bucket": nil, "three buckets": func(example int) int { return min(example/33, 2) }} {
		p := digitsWith(t, 1, 0)
		p.Train.Order, p.Train.Len, p.Train.Bucket = train.Shuffled, 101, bucket
		for _, batch := range []int{1, 16, 33, 101, 200} {
			r := fitted(t, p, train.Config{BatchSize: batch, MaxEpochs: 1}, train.RunOptions{})
			if got, want := p.Train.Steps(batch), r.Best.Step; got != want {
				t.Errorf("%s, batches of %d: got %d steps, want %d", name, batch, got, want)
			}
		}
		for _, batch := range []int{0, -1} { // Fit returns an error for these
			if got, want := p.Train.Steps(batch), p.Train.Steps(1); got != want {
				t.Errorf("%s, batches of %d: got %d steps, want %d, as with batches of 1", name, batch, got, want)
			}
		}
	}
}

func TestTensors(t *testing.T) {
	x := tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float64{1, 2, 3, 4, 5, 6}))
	d := must.Get(train.Tensors(x, tensor.New(tensor.WithShape(3), tensor.WithBacking([]bool{true, false, true})), tensor.New(tensor.WithShape(3, 1), tensor.WithBacking([]int{7, 8, 9})),
		tensor.New(tensor.WithShape(3), tensor.WithBacking([]float32{7, 8, 9}))))(t)
	b, err := d.Batch([]int{2, 0})
	if err != nil || d.Len != 3 {
		t.Fatalf("got %+v, %v and a Len of %d, want a Len of 3", b, err, d.Len)
	}
	for i, want := range []struct {
		data  any
		shape tensor.Shape
	}{{[]float64{5, 6, 1, 2}, tensor.Shape{2, 2}}, {[]bool{true, true}, tensor.Shape{2}}, {[]int{9, 7}, tensor.Shape{2, 1}}, {[]float32{9, 7}, tensor.Shape{2}}} {
		if v := b[i]; !reflect.DeepEqual(v.Data(), want.data) || !slices.Equal(v.Shape(), want.shape) {
			t.Errorf("value %d is %v of shape %v, want %+v", i, v, v.Shape(), want)
		}
	}
	view := must.Get(x.Slice(nil, tensor.S(0)))(t)
	for name, values := range map[string][]*tensor.Dense{
		"nil":        {x, nil},
		"a scalar":   {tensor.New(tensor.FromScalar(1.0))},
		"fewer rows": {x, tensor.New(tensor.WithShape(2), tensor.Of(tensor.Int))},
		"a dtype":    {tensor.New(tensor.WithShape(2), tensor.Of(tensor.Byte))},
		"a view":     {view.(*tensor.Dense)},
		"by columns": {tensor.New(tensor.WithShape(2, 2), tensor.Of(tensor.Float64), tensor.AsFortran([]float64{1, 2, 3, 4}))},
	} {
		wantError(t, name, failure(train.Tensors(values...)), "train: ")
	}
}

// If there isn't enough memory for Len examples, Fit and Evaluate return an error before they allocate it.
func TestLenIsCheckedBeforeMemory(t *testing.T) {
	for _, n := range []int{min(1<<40, math.MaxInt), math.MaxInt} {
		for what, change := range map[string]func(p *train.Problem){
			"Train":      func(p *train.Problem) { p.Train.Len = n },
			"Validation": func(p *train.Problem) { p.Validation.Len = n },
			"a bucket": func(p *train.Problem) {
				p.Validation.Len, p.Validation.Order, p.Validation.Bucket = n, train.InOrder, func(int) int { return 0 }
			},
		} {
			p := digits(t, 1)
			change(&p)
			_, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{})
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("a Len of %d", n)) || !strings.Contains(err.Error(), "of memory, but there is only") {
				t.Errorf("%s with a Len of %d: got %v, want an error about the Len and memory", what, n, err)
			}
			if what == "Train" {
				continue
			}
			wantError(t, what, failure(train.Evaluate(t.Context(), p)), "of memory, but there is only")
		}
	}
	if _, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 1 << 30, MaxEpochs: 1}, train.RunOptions{}); err != nil { // one step with all examples
		t.Errorf("a BatchSize above Len: got %v, want no error", err)
	}
}

// Batch returns an error for an example without a row, even if Len was raised.
func TestTensorsOfNoRow(t *testing.T) {
	d := must.Get(train.Tensors(tensor.New(tensor.WithShape(3, 4), tensor.Of(tensor.Float32)), tensor.New(tensor.WithShape(3), tensor.Of(tensor.Int))))(t)
	for _, examples := range [][]int{{99}, {3}, {-1}, {0, math.MaxInt}, {math.MinInt}} {
		wantError(t, examples, failure(d.Batch(examples)), "3 rows")
	}
	p := digits(t, 1)
	p.Train = d
	p.Train.Len = 100
	wantError(t, "with a raised Len", failure(train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{})), "3 rows")
	p.Train.Len, p.Train.Order = 3, train.Fresh
	wantError(t, "with fresh examples in the second epoch", failure(train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 2}, train.RunOptions{})), "3 rows")
}
