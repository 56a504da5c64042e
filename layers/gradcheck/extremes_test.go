package gradcheck_test

import (
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/extremes"
	"github.com/heed-go/heed/layers/gradcheck"
)

func TestExtremes(t *testing.T) {
	type project struct{ Seed uint64 }
	check := func(c gradcheck.Config, seed uint64) ([]float64, error) {
		return nil, c.Check(func(_ *G.ExprGraph, nodes G.Nodes) (*G.Node, error) {
			y, err := G.Square(nodes[0])
			if err != nil {
				return nil, err
			}
			return gradcheck.Project(y, seed)
		}, gradcheck.Input{Value: tensor.New(tensor.WithShape(3), tensor.WithBacking([]float64{1, 2, 3}))})
	}
	extremes.Run(t, []string{"MismatchError"},
		extremes.Of(gradcheck.Config{}, func(c gradcheck.Config) ([]float64, error) { return check(c, 1) }),
		extremes.Of(project{1}, func(c project) ([]float64, error) { return check(gradcheck.Config{}, c.Seed) }),
	)
}
