package kernel

import (
	"fmt"
	"math"
	"testing"
)

// TestAdditiveScores compares the scores and gradients of every body with the formulas, for operands smaller than a
// tile and for operands with many tasks.
func TestAdditiveScores(t *testing.T) {
	eachBody(t, func(t *testing.T) { testAdditiveScores[float32](t, 2e-6) }, func(t *testing.T) { testAdditiveScores[float64](t, 1e-14) })
}

func testAdditiveScores[F Float](t *testing.T, tol float64) {
	for _, s := range []AdditiveShape{{1, 1, 1, 1}, {2, 3, 5, 1}, {3, 1, 4, 7}, {2, 5, 1, 4}, {2, 37, 41, 19}, {1, 90, 130, 40}, {1, 2, 5000, 3}, {1, 3, 2, 5000}} {
		for _, scaled := range []bool{true, false} {
			q, k := normals[F](1, s.Batch*s.Queries*s.Width), normals[F](2, s.Batch*s.Keys*s.Width)
			g := normals[F](3, s.Batch*s.Queries*s.Keys)
			for i := range g {
				if i%3 == 1 {
					g[i] = 0
				}
			}
			var v []F
			if scaled {
				v = normals[F](4, s.Width)
				v[s.Width/2] = 0
			}
			want := make([]float64, len(g))
			dq, dk, dv := make([]float64, len(q)), make([]float64, len(k)), make([]float64, s.Width)
			for index := range g {
				b, i, j := index/(s.Queries*s.Keys), index/s.Keys%s.Queries, index%s.Keys
				for f := range s.Width {
					x, y, scale := (b*s.Queries+i)*s.Width+f, (b*s.Keys+j)*s.Width+f, 1.0
					if scaled {
						scale = float64(v[f])
					}
					tanh := math.Tanh(float64(q[x] + k[y]))
					want[index] += scale * tanh
					d := float64(g[index]) * scale * (1 - tanh*tanh)
					dq[x], dk[y], dv[f] = dq[x]+d, dk[y]+d, dv[f]+float64(g[index])*tanh
				}
			}
			// The results must overwrite earlier values.
			scores, gotQ, gotK := normals[F](5, len(g)), normals[F](6, len(q)), normals[F](7, len(k))
			AdditiveScores(0, scores, q, k, v, s)
			closeTo(t, fmt.Sprintf("%+v, scale %t: scores", s, scaled), scores, want, tol)
			if scaled {
				gotV := normals[F](8, s.Width)
				AdditiveScoresGrad(0, gotQ, gotK, gotV, q, k, v, g, s, normals[F](9, AdditiveWork(s)))
				closeTo(t, fmt.Sprintf("%+v: dv", s), gotV, dv, tol*10)
			} else {
				AdditiveScoresGrad(0, gotQ, gotK, nil, q, k, nil, g, s, nil)
			}
			closeTo(t, fmt.Sprintf("%+v, scale %t: dq", s, scaled), gotQ, dq, tol*10)
			closeTo(t, fmt.Sprintf("%+v, scale %t: dk", s, scaled), gotK, dk, tol*10)
		}
	}
}

// TestAdditiveScoresAtTheEdges puts special values into queries and keys whose scores all have gradient 0.
func TestAdditiveScoresAtTheEdges(t *testing.T) {
	eachBody(t, testAdditiveScoresAtTheEdges[float32], testAdditiveScoresAtTheEdges[float64])
}

func testAdditiveScoresAtTheEdges[F Float](t *testing.T) {
	s := AdditiveShape{Batch: 2, Queries: 6, Keys: 21, Width: 5}
	hiddenQuery, hiddenKey := 2, 17
	v, g := normals[F](3, s.Width), normals[F](4, s.Batch*s.Queries*s.Keys)
	for index := range g {
		if index/s.Keys%s.Queries == hiddenQuery || index%s.Keys == hiddenKey {
			g[index] = F(math.Copysign(0, float64(g[index])))
		}
	}
	run := func(fill F) (dq, dk, dv []F) {
		q, k := normals[F](1, s.Batch*s.Queries*s.Width), normals[F](2, s.Batch*s.Keys*s.Width)
		for b := range s.Batch {
			for f := range s.Width {
				q[(b*s.Queries+hiddenQuery)*s.Width+f], k[(b*s.Keys+hiddenKey)*s.Width+f] = fill, -fill
			}
		}
		dq, dk, dv = make([]F, len(q)), make([]F, len(k)), make([]F, len(v))
		AdditiveScoresGrad(0, dq, dk, dv, q, k, v, g, s, make([]F, AdditiveWork(s)))
		for b := range s.Batch {
			for f := range s.Width {
				if x, y := dq[(b*s.Queries+hiddenQuery)*s.Width+f], dk[(b*s.Keys+hiddenKey)*s.Width+f]; x != 0 || y != 0 {
					t.Errorf("with %v in the hidden query and key, their gradients are %v and %v, want 0", fill, x, y)
				}
			}
		}
		return dq, dk, dv
	}
	wantQ, wantK, wantV := run(0)
	for _, fill := range []F{1, -7, F(math.Inf(1)), F(math.Inf(-1)), F(math.NaN())} {
		dq, dk, dv := run(fill)
		for what, p := range map[string][2][]F{"dq": {dq, wantQ}, "dk": {dk, wantK}, "dv": {dv, wantV}} {
			for i := range p[0] {
				if math.Float64bits(float64(p[0][i])) != math.Float64bits(float64(p[1][i])) {
					t.Fatalf("with %v in the hidden query and key, %s[%d] is %v, want %v", fill, what, i, p[0][i], p[1][i])
				}
			}
		}
	}

	// NaN in feature 0 of query 0 must reach the results that depend on it, and no others.
	q, k := normals[F](1, s.Batch*s.Queries*s.Width), normals[F](2, s.Batch*s.Keys*s.Width)
	q[0] = F(math.NaN())
	only := func(what string, results []F, reached func(i int) bool) {
		t.Helper()
		for i, x := range results {
			if (x != x) != reached(i) {
				t.Errorf("with NaN in query 0, %s[%d] is %v (NaN: %t, want %t)", what, i, x, x != x, reached(i))
			}
		}
	}
	scores := make([]F, len(g))
	AdditiveScores(0, scores, q, k, v, s)
	only("scores", scores, func(i int) bool { return i < s.Keys })
	dq, dk, dv := make([]F, len(q)), make([]F, len(k)), make([]F, len(v))
	AdditiveScoresGrad(0, dq, dk, dv, q, k, v, g, s, make([]F, AdditiveWork(s)))
	only("dq", dq, func(i int) bool { return i == 0 })
	only("dk", dk, func(i int) bool { return i%s.Width == 0 && i/s.Width < s.Keys && i/s.Width != hiddenKey })
	only("dv", dv, func(i int) bool { return i == 0 })
}

func BenchmarkAdditiveScores(b *testing.B) {
	for _, s := range []AdditiveShape{{1, 512, 512, 64}, {32, 16, 16, 64}, {32, 1, 40, 256}} {
		q, k, v := normals[float32](1, s.Batch*s.Queries*s.Width), normals[float32](2, s.Batch*s.Keys*s.Width), normals[float32](3, s.Width)
		scores, work := normals[float32](4, s.Batch*s.Queries*s.Keys), make([]float32, AdditiveWork(s))
		dq, dk, dv := make([]float32, len(q)), make([]float32, len(k)), make([]float32, len(v))
		b.Run(fmt.Sprintf("%v/forward", s), func(b *testing.B) {
			b.ReportAllocs()
			out := make([]float32, len(scores))
			for b.Loop() {
				AdditiveScores(0, out, q, k, v, s)
			}
		})
		b.Run(fmt.Sprintf("%v/backward", s), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				AdditiveScoresGrad(0, dq, dk, dv, q, k, v, scores, s, work)
			}
		})
	}
}
