package ops

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// Softcap returns c·tanh(x/c) for every element: nearly x for small x, and always from −c to c (Gemma 2, 2024).
func Softcap(e *Env, x *G.Node, c float64) (*G.Node, error) {
	const name = "softcap"
	if err := CheckFloat(name, "the input", x); err != nil {
		return nil, err
	}
	if err := checkCap(name, c); err != nil {
		return nil, err
	}
	return ByDtype(x, softcap[float32], softcap[float64])(e, x, c)
}

func checkCap(name string, c float64) error {
	if !(c > 0) || math.IsInf(c, 1) {
		return fmt.Errorf("%s: the cap must be above 0 and finite, got %v", name, c)
	}
	return nil
}

func softcap[F kernel.Float](e *Env, x *G.Node, c float64) (*G.Node, error) {
	return elementwise(e, "softcap", fmt.Sprintf("%v(%v)", x.Shape(), c), x, unary[F]{
		forward:  func(cores int, y, x []F) { kernel.Softcap(cores, y, x, F(c)) },
		backward: func(cores int, dx, y, g []F) { kernel.SoftcapGrad(cores, dx, y, g, F(c)) },
	}, true)
}
