package train_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// threeMeans is a user-defined rule with three tensors of memory.
type threeMeans struct{}

func (threeMeans) Memory() []string { return []string{"three.fast", "three.slow", "three.most"} }
func (threeMeans) Check(int) error  { return nil }

func (threeMeans) Update(s optim.Step) {
	w := s.Weight.Float32s()
	fast, slow, peak := s.Memory[0].Value.Float32s(), s.Memory[1].Value.Float32s(), s.Memory[2].Value.Float32s()
	for i, g := range s.Grad.Float32s() {
		fast[i] += (g - fast[i]) / 2
		slow[i] += (g - slow[i]) / 8
		peak[i] = max(peak[i], g*g)
		w[i] -= float32(s.Rate)*(fast[i]+slow[i])/(peak[i]+1e-3) + float32(s.Rate*s.Decay)*w[i]
	}
}

// A user-defined rule for matrices gives the same bits and checkpoints in one process, in four processes and after
// resuming.
func TestOwnRule(t *testing.T) {
	run := func(size, epochs int, checkpoint string, resume bool) []outcome {
		return fitAll(t, newLocal(size, 0), func(rank int) process {
			c := setup{train.Config{BatchSize: 32, MicroBatches: 16, MaxEpochs: epochs}, train.RunOptions{Seed: 5, Checkpoint: checkpoint, Resume: resume, Solver: &optim.Solver{
				LearningRate: 0.003, ClipNorm: 0.5,
				Groups: []optim.Group{{Match: func(_ string, rank int) bool { return rank == 2 }, Rule: threeMeans{}, WeightDecay: 0.1}},
			}}}
			if rank > 0 {
				c.Checkpoint = filepath.Join(checkpoint, "not here")
			}
			return process{nil, grouped(t), c}
		})
	}
	whole := filepath.Join(t.TempDir(), "c")
	want := run(1, 3, whole, false)[0]
	if want.err != nil {
		t.Fatal(want.err)
	}
	wantFile := must(os.ReadFile(whole))(t)
	if !bytes.Contains(wantFile, []byte(`"three.most.`)) {
		t.Error("the checkpoint lacks the memory of the rule")
	}
	checkpoint := filepath.Join(t.TempDir(), "c")
	for _, part := range []struct{ size, epochs int }{{4, 1}, {1, 2}, {2, 3}} {
		for rank, o := range run(part.size, part.epochs, checkpoint, true) {
			if o.err != nil {
				t.Fatalf("process %d of %d: %v", rank, part.size, o.err)
			}
			if part.epochs == 3 && !same(o.values, want.values) {
				t.Errorf("process %d has other parameters than one process without interruption", rank)
			}
		}
	}
	if file, err := os.ReadFile(checkpoint); err != nil || !bytes.Equal(file, wantFile) {
		t.Errorf("the checkpoint differs from the one of a single process without interruption: %v", err)
	}
}
