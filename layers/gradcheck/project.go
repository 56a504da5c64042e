package gradcheck

import (
	"fmt"
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
)

// Project reduces y, a float64 node of any shape, to the scalar Σ wᵢyᵢ, so that Check and Expr can check expressions
// that aren't scalar. The seed determines the weights wᵢ. Each weight has a random sign and an absolute value in [0.5,
// 1.5). A plain sum could hide errors: the gradient of the sum of a softmax is zero.
//
// Project has an op with a derivative of its own, because gorgonia.Sum is wrong for 4-D tensors.
func Project(y *G.Node, seed uint64) (*G.Node, error) {
	if y.Dtype() != tensor.Float64 {
		return nil, fmt.Errorf("gradcheck: Project: %s must be float64, got %v", y.Name(), y.Dtype())
	}
	weights := make([]float64, y.Shape().TotalSize())
	r := rand.New(rand.NewPCG(seed, 0xd1b54a32d192ed03))
	for i := range weights {
		weights[i] = 0.5 + r.Float64()
		if r.Uint64()&1 == 1 {
			weights[i] = -weights[i]
		}
	}
	n, err := ops.WeightedSum(&ops.Env{}, y, weights, fmt.Sprintf("gradcheck.Project with seed %d", seed))
	if err != nil {
		return nil, fmt.Errorf("gradcheck: Project: %w", err)
	}
	return n, nil
}
