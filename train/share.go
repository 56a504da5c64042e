package train

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/train/optim"
)

// What the processes of a Group share out, and how they put it together again. A process's micro-batches are a branch
// of the tree by which gradients are added up: it hands out their sum. It adds up those of all processes for its part
// of the parameters, steps that part, and hands out what has become of it.

// check checks that a group can take steps of that number of micro-batches with a solver.
func (t *team) check(micro int, s *optim.Solver) error {
	micro = max(micro, 1)
	switch {
	case t.size == 1:
		return nil
	case micro%t.size != 0 || bits.OnesCount(uint(micro/t.size)) != 1:
		return fmt.Errorf("train: the processes of a Group must divide MicroBatches into shares that are a power of two, got %d processes for %d: "+
			"set MicroBatches to the number of processes, or 2, 4, 8 times that", t.size, micro)
	case s == nil:
		return fmt.Errorf("train: a Group needs an *optim.Solver, which can step a part of the parameters")
	}
	return nil
}

// parts divides tensors into n parts of about one size, each a list of places in order.
func parts(learnables G.Nodes, n int) [][]int {
	places := make([]int, len(learnables))
	for i := range places {
		places[i] = i
	}
	size := func(i int) int { return learnables[i].Shape().TotalSize() }
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
	parts, sizes := make([][]int, n), make([]int, n)
	for _, i := range places { // the largest first, each to who has least
		to := slices.Index(sizes, slices.Min(sizes))
		parts[to], sizes[to] = append(parts[to], i), sizes[to]+size(i)
	}
	for _, p := range parts {
		slices.Sort(p)
	}
	return parts
}

// part returns the places of the parameters that this process steps.
func (t *trainer) part() []int { return t.parts[t.team.rank] }

// own returns those of a step's examples that this process takes, in micro-batches of a size.
func (t *trainer) own(examples []int, size int) []int {
	from := min(t.team.rank*t.share*size, len(examples))
	return examples[from:min(from+t.share*size, len(examples))]
}

// weigh returns the weight of a step, of which each process has its own batches or an error, and how many processes
// have any.
func (t *trainer) weigh(batches []Batch, err error) (weight float64, processes int, _ error) {
	weights := make([]float64, t.share)
	for i := range weights {
		weights[i] = -1 // no batch
		if i < len(batches) {
			weights[i] = batches[i].Weight
		}
	}
	weights, err = t.team.agree(weights, err)
	for i, w := range weights {
		switch {
		case w >= 0 && !math.IsInf(w, 1) && (i == 0 || weights[i-1] >= 0):
			weight, processes = weight+w, i/t.share+1
		case w != -1:
			return 0, 0, t.team.broken(fmt.Errorf("micro-batch %d has a weight of %v", i, w))
		}
	}
	return weight, processes, err
}

// reduce adds up the sums of all processes, or returns the error of one, and gives each parameter of this one's part
// its gradient.
func (t *trainer) reduce(processes int, err error) (sums, error) {
	if t.team.size == 1 {
		if err != nil {
			return sums{}, err
		}
		for i, g := range t.sums[0].grads {
			t.mean[i].grad = g
		}
		return t.sums[0].sums, nil
	}
	numbers := make([]float64, 0, 2+2*len(t.workers[0].first.metrics))
	if len(t.sums) > 0 && err == nil {
		t.sums[0].sums.append(numbers)
	}
	all, err := t.team.agree(numbers[:cap(numbers)], err)
	if err != nil {
		return sums{}, err
	}
	var totals []sums
	for s := range slices.Chunk(all, cap(numbers)) {
		totals = append(totals, sumsOf(s))
	}
	inTree(0, processes, func(a, b int) { totals[a].add(totals[b]) })
	return totals[0], t.reduceGradients(processes)
}

// reduceGradients gives each parameter of this process's part its gradient: the sum of those of the first processes.
func (t *trainer) reduceGradients(processes int) error {
	of := func(part []int) (grads []*tensor.Dense) {
		for _, i := range part {
			grads = append(grads, t.sums[0].grads[i])
		}
		return grads
	}
	send := func(peer int) []*tensor.Dense {
		if t.team.rank >= processes {
			return nil
		}
		return of(t.parts[peer])
	}
	if t.received == nil {
		t.received = make([][]*tensor.Dense, t.team.size)
	}
	receive := func(peer int) []*tensor.Dense {
		if peer >= processes {
			return nil
		}
		if t.received[peer] == nil {
			for _, i := range t.part() {
				n := t.learnables[i]
				t.received[peer] = append(t.received[peer], tensor.New(tensor.WithShape(n.Shape()...), tensor.Of(n.Dtype())))
			}
		}
		return t.received[peer]
	}
	if err := t.team.swap(send, receive); err != nil {
		return err
	}
	if t.team.rank < processes {
		t.received[t.team.rank] = of(t.part())
	}
	inTree(0, processes, func(a, b int) { add(t.received[a], t.received[b]) })
	for k, i := range t.part() {
		t.mean[i].grad = t.received[0][k]
	}
	return nil
}

// inTree has the numbers of n neighbours, from the first on, added up in the order of the tree: add adds b's to a's.
func inTree(first, n int, add func(a, b int)) {
	if n < 2 {
		return
	}
	half := 1 << (bits.Len(uint(n-1)) - 1) // the largest power of two below n
	inTree(first, half, add)
	inTree(first+half, n-half, add)
	add(first, first+half)
}

// solve steps the parameters by the gradients: in a group, each process its part, which it then hands out.
func (t *trainer) solve(solver G.Solver) error {
	if t.team.size == 1 {
		return solver.Step(t.model)
	}
	s := solver.(*optim.Solver) // as team.check has it
	own, err := s.SumSquares(t.model, t.part())
	padded := make([]float64, len(t.model))
	copy(padded, own)
	all, err := t.team.agree(padded, err)
	if err != nil {
		return err
	}
	squares := make([]float64, len(t.model))
	for rank, part := range t.parts {
		for k, i := range part {
			squares[i] = all[rank*len(t.model)+k]
		}
	}
	if _, err := t.team.agree(nil, s.StepPart(t.model, t.part(), squares)); err != nil {
		return err
	}
	values := func(rank int) (values []*tensor.Dense) {
		for _, i := range t.parts[rank] {
			values = append(values, t.model[i].Value().(*tensor.Dense)) // a parameter's, which Bind has bound
		}
		return values
	}
	return t.team.swap(func(int) []*tensor.Dense { return values(t.team.rank) }, values)
}

// memories returns what the solver remembers of each parameter: in a group, the first process gets what others have.
func (f *fit) memories() ([][]optim.Memory, error) {
	memories := make([][]optim.Memory, len(f.train.model))
	states := func(s *optim.Solver, part []int) (err error) {
		for _, i := range part {
			if memories[i], err = s.State(f.train.model, i); err != nil {
				break
			}
		}
		return err
	}
	_, err := f.team.agree(nil, states(f.solver, f.train.part()))
	if err != nil || f.team.size == 1 {
		return memories, err
	}
	if f.team.rank == 0 {
		s := f.solver
		empty := &optim.Solver{Rule: s.Rule, LearningRate: s.LearningRate, WeightDecay: s.WeightDecay, Groups: s.Groups} // has room for others' memories
		err = states(empty, slices.Concat(f.train.parts[1:]...))
	}
	if _, err := f.team.agree(nil, err); err != nil {
		return nil, err
	}
	of := func(rank int) (tensors []*tensor.Dense) {
		for _, i := range f.train.parts[rank] {
			for _, m := range memories[i] {
				tensors = append(tensors, m.Value)
			}
		}
		return tensors
	}
	send := func(peer int) []*tensor.Dense {
		if peer > 0 {
			return nil
		}
		return of(f.team.rank)
	}
	receive := func(peer int) []*tensor.Dense {
		if f.team.rank > 0 {
			return nil
		}
		return of(peer)
	}
	return memories, f.team.swap(send, receive)
}
