package optim_test

import (
	"fmt"
	"log"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/train/optim"
)

// AdaGrad divides each gradient by the root of the sum of its squares so far (Duchi et al., 2011).
type AdaGrad struct {
	Eps float64 // added to the root
}

var adaGradMemory = []string{"adagrad.sum"}

func (AdaGrad) Memory() []string { return adaGradMemory }

func (r AdaGrad) Check(rank int) error {
	if !(r.Eps > 0) {
		return fmt.Errorf("the Eps of AdaGrad must be above 0, got %v", r.Eps)
	}
	return nil
}

func (r AdaGrad) Update(s optim.Step) {
	if s.Weight.Dtype() == tensor.Float32 {
		adaGrad(r, s, s.Weight.Float32s(), s.Grad.Float32s(), s.Memory[0].Value.Float32s())
	} else {
		adaGrad(r, s, s.Weight.Float64s(), s.Grad.Float64s(), s.Memory[0].Value.Float64s())
	}
}

func adaGrad[F float32 | float64](r AdaGrad, s optim.Step, w, grad, sum []F) {
	for i, g := range grad {
		g += F(s.Decay) * w[i]
		sum[i] += g * g
		w[i] -= F(s.Rate * float64(g) / (math.Sqrt(float64(sum[i])) + r.Eps))
	}
}

// A rule of your own works like this package's rules: in groups, in train.Fit, and in checkpoints, which save the sums
// as adagrad.sum.
func ExampleRule() {
	g := G.NewGraph()
	w := G.NewVector(g, tensor.Float64, G.WithShape(3), G.WithName("w"), G.WithValue(tensor.New(tensor.WithBacking([]float64{3, -2, 1}))))
	cost := G.Must(G.Sum(G.Must(G.Square(w))))
	if _, err := G.Grad(cost, w); err != nil {
		log.Fatal(err)
	}
	vm := G.NewTapeMachine(g, G.BindDualValues(w))
	defer vm.Close()

	solver := &optim.Solver{Rule: AdaGrad{Eps: 1e-8}, LearningRate: 1, ClipNorm: 5}
	model := G.NodesToValueGrads(G.Nodes{w})
	for range 5 {
		check(vm.RunAll())
		check(solver.Step(model))
		vm.Reset()
	}
	memory, err := solver.State(model, 0)
	check(err)
	fmt.Printf("weights %.3f, memory %s\n", w.Value().Data(), memory[0].Name)
	// Output:
	// weights [0.422 -0.030 0.000], memory adagrad.sum
}
