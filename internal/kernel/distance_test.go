package kernel

import (
	"fmt"
	"math"
	"testing"
)

var distances = []Distance{SquaredError, AbsoluteError, HuberError, BinaryCrossEntropy}

// distanceOf returns a distance and its derivative with respect to x, from the definition.
func distanceOf(d Distance, delta, x, t float64) (value, dx float64) {
	by := x - t
	switch {
	case d == SquaredError:
		return by * by, 2 * by
	case d == BinaryCrossEntropy:
		yes := logistic(x)
		return -t*math.Log(yes) - (1-t)*math.Log(1-yes), yes - t
	case d == HuberError && math.Abs(by) <= delta:
		return by * by / 2, by
	case d == HuberError:
		return delta * (math.Abs(by) - delta/2), math.Copysign(delta, by)
	}
	return math.Abs(by), math.Copysign(1, by)
}

// TestDistances compares distances and gradients with the definitions, for more numbers than one task handles and for
// rows that span tasks.
func TestDistances(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testDistances[float32](t, 1e-6) })
	t.Run("float64", func(t *testing.T) { testDistances[float64](t, 1e-12) })
}

func testDistances[F Float](t *testing.T, tol float64) {
	const delta = 0.75
	for _, d := range distances {
		for _, size := range [][2]int{{1, 1}, {7, 3}, {1, 5000}, {5000, 1}, {2, 3001}} {
			rows, width := size[0], size[1]
			n := rows * width
			x, targets, weights := normals[F](1, n), normals[F](2, n), normals[F](3, rows)
			var want float64
			grad := make([]float64, n)
			for i := range x {
				if d == BinaryCrossEntropy {
					targets[i] = F(logistic(float64(targets[i])))
				}
				p := i / width
				weights[p] = F(math.Abs(float64(weights[p])))
				if p%3 == 1 {
					x[i], weights[p] = F(math.NaN()), 0
					continue
				}
				value, dx := distanceOf(d, delta, float64(x[i]), float64(targets[i]))
				want += float64(weights[p]) * value
				grad[i] = float64(weights[p]) * dx
			}
			what := fmt.Sprintf("distance %d, %d rows of %d", d, rows, width)
			got := SumDistances(0, make([]float64, DistanceTasks(n)), d, delta, x, targets, weights, width)
			closeTo(t, what, []float64{got}, []float64{want}, 1e-12)
			dx := normals[F](4, n)
			DistanceGrad(0, dx, d, delta, x, targets, weights, width)
			closeTo(t, "gradient of "+what, dx, grad, tol)
		}
	}
}

func BenchmarkDistance(b *testing.B) {
	const rows, width = 768, 64
	x, targets, weights := normals[float32](1, rows*width), normals[float32](2, rows*width), normals[float32](3, rows)
	sums, dx := make([]float64, DistanceTasks(rows*width)), make([]float32, rows*width)
	for _, d := range distances {
		b.Run(fmt.Sprint("forward/", d), func(b *testing.B) {
			for b.Loop() {
				SumDistances(0, sums, d, 1, x, targets, weights, width)
			}
		})
		b.Run(fmt.Sprint("backward/", d), func(b *testing.B) {
			for b.Loop() {
				DistanceGrad(0, dx, d, 1, x, targets, weights, width)
			}
		})
	}
}
