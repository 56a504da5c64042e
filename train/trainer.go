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

// A trainer computes the gradients of training steps, and updates the parameters with them. The gradient of a step is
// the mean over its micro-batches, weighted by the Counts of their losses.
//
// The processes of a Group divide the work of a step. The micro-batches of a process are a branch of the tree in which
// gradients are added up. Each process updates its own part of the parameters: it gets the gradients of this part from
// the other processes, adds them up, updates the part and sends the new values to the other processes.
type trainer struct {
	*crew
	model []G.ValueGrad   // the learnables with the gradients of the last step, for a solver
	mean  []*meanGradient // the elements of model, if a step has several micro-batches

	team     *team
	parts    [][]int           // for each process, the indices in model of the parameters that it updates
	received [][]*tensor.Dense // from each process, its gradients for this process's part of the parameters
}

// meanGradient is a parameter with its mean gradient over a step.
type meanGradient struct {
	param *G.Node
	grad  *tensor.Dense
}

func (m *meanGradient) Name() string           { return m.param.Name() }
func (m *meanGradient) Value() G.Value         { return m.param.Value() }
func (m *meanGradient) Grad() (G.Value, error) { return m.grad, nil }
func (m *meanGradient) Overwritten() bool      { return true }

// newTrainer returns the trainer of a process. Its first graph is for a batch like the given one.
func newTrainer(p Problem, c Config, options RunOptions, team *team, like batch) (*trainer, error) {
	crew, err := newCrew(p, c, options, team.rank, team.size, like)
	if err != nil {
		return nil, err
	}
	t := &trainer{crew: crew, team: team, parts: parts(crew.learnables, team.size)}
	for _, n := range t.learnables {
		m := &meanGradient{param: n}
		t.mean, t.model = append(t.mean, m), append(t.model, m)
	}
	return t, nil
}

// parts divides the learnables into n parts of similar size. Each part is a list of increasing indices.
func parts(learnables G.Nodes, n int) [][]int {
	places := make([]int, len(learnables))
	for i := range places {
		places[i] = i
	}
	size := func(i int) int { return learnables[i].Shape().TotalSize() }
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
	parts, sizes := make([][]int, n), make([]int, n)
	for _, i := range places { // add the largest remaining tensor to the smallest part
		smallest := slices.Index(sizes, slices.Min(sizes))
		parts[smallest], sizes[smallest] = append(parts[smallest], i), sizes[smallest]+size(i)
	}
	for _, p := range parts {
		slices.Sort(p)
	}
	return parts
}

// part returns the indices of the parameters that this process updates.
func (t *trainer) part() []int { return t.parts[t.team.rank] }

// own returns the examples of a step that this process computes. A micro-batch has size examples.
func (t *trainer) own(examples []int, size int) []int {
	from := min(t.first*size, len(examples))
	return examples[from:min(from+t.share*size, len(examples))]
}

// total returns the total weight of a step and the number of processes that have batches. Each process passes its own
// batches, which weigh has weighed, or an error.
func (t *trainer) total(batches []batch, err error) (weight float64, processes int, _ error) {
	weights := make([]float64, t.share)
	for i := range weights {
		weights[i] = -1 // no batch
		if i < len(batches) {
			weights[i] = batches[i].weight
		}
	}
	if weights, err = t.team.agree(weights, err); err != nil {
		return 0, 0, err
	}
	for i, w := range weights {
		switch {
		case w >= 0 && !math.IsInf(w, 1) && (i == 0 || weights[i-1] >= 0):
			weight, processes = weight+w, i/t.share+1
		case w != -1:
			return 0, 0, t.team.broken(fmt.Errorf("micro-batch %d has a weight of %v", i, w))
		}
	}
	return weight, processes, nil
}

// run computes the gradient of a step, counted from 0 over all epochs, and returns the sums of the step. The argument
// batches holds this process's batches. The argument weight is the weight of the whole step, and processes is the
// number of processes that have batches.
func (t *trainer) run(step int, batches []batch, weight float64, processes int) (sums, error) {
	if t.micro == 1 {
		g, s, err := t.workers[0].run(uint64(step), batches[0], 1)
		if err == nil {
			t.model = g.model
		}
		return s, err
	}
	return t.reduce(processes, t.crew.run(step, batches, weight))
}

// reduce adds up the sums of all processes and sets the gradients of this process's part of the parameters. If one
// process has an error, reduce returns it in all.
func (t *trainer) reduce(processes int, err error) (sums, error) {
	metrics := t.workers[0].first.metrics
	numbers := make([]float64, 0, length(metrics))
	if len(t.sums) > 0 && err == nil {
		t.sums[0].sums.append(numbers)
	}
	gathered, err := t.team.agree(numbers[:cap(numbers)], err)
	if err != nil {
		return sums{}, err
	}
	var totals []sums
	for s := range slices.Chunk(gathered, cap(numbers)) {
		totals = append(totals, sumsOf(s, metrics))
	}
	inTree(0, processes, func(a, b int) { totals[a].add(totals[b]) })
	return totals[0], t.reduceGradients(processes)
}

// reduceGradients sets the gradient of each parameter in this process's part to the sum over the processes that have
// batches: the first ones, whose number is the argument processes.
func (t *trainer) reduceGradients(processes int) error {
	pick := func(part []int) (grads []*tensor.Dense) {
		for _, i := range part {
			grads = append(grads, t.sums[0].grads[i])
		}
		return grads
	}
	if t.received == nil {
		t.received = make([][]*tensor.Dense, t.team.size)
	}
	err := t.team.swap(func(from, to int) []*tensor.Dense {
		switch {
		case from >= processes:
			return nil
		case from == t.team.rank:
			return pick(t.parts[to])
		case t.received[from] == nil:
			for _, i := range t.part() {
				n := t.learnables[i]
				t.received[from] = append(t.received[from], tensor.New(tensor.WithShape(n.Shape()...), tensor.Of(n.Dtype())))
			}
		}
		return t.received[from]
	})
	if err != nil {
		return err
	}
	if t.team.rank < processes {
		t.received[t.team.rank] = pick(t.part())
	}
	inTree(0, processes, func(a, b int) { add(t.received[a], t.received[b]) })
	for k, i := range t.part() {
		t.mean[i].grad = t.received[0][k]
	}
	return nil
}

// inTree adds up n numbers, from index first on, in the order of the tree: add(a, b) adds number b to number a.
func inTree(first, n int, add func(a, b int)) {
	if n < 2 {
		return
	}
	half := 1 << (bits.Len(uint(n-1)) - 1) // the largest power of two below n
	inTree(first, half, add)
	inTree(first+half, n-half, add)
	add(first, first+half)
}

// solve updates the parameters with their gradients. In a Group, each process updates its part and sends it to the
// others.
func (t *trainer) solve(solver G.Solver) error {
	if t.team.size == 1 {
		return solver.Step(t.model)
	}
	s := solver.(*optim.Solver) // team.check made sure of it
	own, err := s.SumSquares(t.model, t.part())
	padded := make([]float64, len(t.model))
	copy(padded, own)
	gathered, err := t.team.agree(padded, err)
	if err != nil {
		return err
	}
	squares := make([]float64, len(t.model))
	for rank, part := range t.parts {
		for k, i := range part {
			squares[i] = gathered[rank*len(t.model)+k]
		}
	}
	if _, err := t.team.agree(nil, s.StepPart(t.model, t.part(), squares)); err != nil {
		return err
	}
	return t.team.swap(func(from, _ int) (values []*tensor.Dense) {
		for _, i := range t.parts[from] {
			values = append(values, t.model[i].Value().(*tensor.Dense)) // Bind binds tensors only
		}
		return values
	})
}

// states returns the memory of a solver, which may be nil, for each parameter in a part of the model.
func (t *trainer) states(s *optim.Solver, part []int) (memories [][]optim.Memory, err error) {
	memories = make([][]optim.Memory, len(t.model))
	for _, i := range part {
		if s == nil || err != nil {
			break
		}
		memories[i], err = s.State(t.model, i)
	}
	return memories, err
}

// memories returns the solver's memory for each parameter. In a Group, the first process collects the memory of the
// others; the others return only their own.
func (t *trainer) memories(s *optim.Solver) ([][]optim.Memory, error) {
	memories, err := t.states(s, t.part())
	if _, err = t.team.agree(nil, err); err != nil || t.team.size == 1 {
		return memories, err
	}
	if t.team.rank == 0 {
		empty := &optim.Solver{Rule: s.Rule, LearningRate: s.LearningRate, WeightDecay: s.WeightDecay, Groups: s.Groups} // its State makes tensors for the memory of the others
		for _, i := range slices.Concat(t.parts[1:]...) {
			if err == nil {
				memories[i], err = empty.State(t.model, i)
			}
		}
	}
	if _, err := t.team.agree(nil, err); err != nil {
		return nil, err
	}
	return memories, t.team.swap(func(from, to int) (tensors []*tensor.Dense) {
		for _, i := range t.parts[from] {
			for _, m := range memories[i] {
				if to == 0 {
					tensors = append(tensors, m.Value)
				}
			}
		}
		return tensors
	})
}
