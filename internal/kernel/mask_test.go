package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// random sets some options at random.
func (m *Mask[F]) random(r *rand.Rand) {
	queries, keys := m.Shape[2], m.Shape[3]
	broadcast := func() [4]int {
		s := m.Shape
		for i := range 3 {
			if r.IntN(2) == 0 {
				s[i] = 1
			}
		}
		if r.IntN(3) == 0 {
			s[3] = 1 + r.IntN(s[3])
		}
		return s
	}
	m.Causal = r.IntN(2) == 0
	if r.IntN(3) == 0 {
		m.Slopes = normals[F](r.Uint64(), m.Shape[1])
		for i := range m.Slopes {
			m.Slopes[i] /= 10
		}
	}
	offset := func() int {
		switch r.IntN(8) {
		case 0:
			return -r.IntN(queries + 1)
		case 1:
			return keys + r.IntN(10)
		case 2:
			if m.Slopes == nil { // with slopes, rounding would swallow the scores
				return []int{MaxOffset, -MaxOffset}[r.IntN(2)]
			}
		}
		return r.IntN(keys)
	}
	switch r.IntN(3) {
	case 0:
		m.Offset = offset()
	case 1:
		for range m.Shape[0] {
			m.Offsets = append(m.Offsets, offset())
		}
	}
	if r.IntN(2) == 0 {
		m.Window = &Window{}
		for _, side := range []*int{&m.Window.Left, &m.Window.Right} {
			*side = []int{-1, 0, r.IntN(20), r.IntN(keys), MaxOffset}[r.IntN(5)]
		}
	}
	if r.IntN(3) == 0 {
		m.KeyLengths = make([]int, m.Shape[0])
		for i := range m.KeyLengths {
			m.KeyLengths[i] = r.IntN(keys + 1)
		}
	}
	if r.IntN(4) == 0 {
		m.Documents = documents(keys, randomDocuments(r, m.Shape[0], keys)...)
	}
	if r.IntN(5) == 0 {
		m.Blocks = randomBlocks(r, 1+r.IntN(2*max(queries, keys)), 1+r.IntN(keys+70))
	}
	if r.IntN(4) == 0 {
		m.AllowShape = broadcast()
		m.Allow = make([]bool, product4(m.AllowShape))
		for i := range m.Allow {
			m.Allow[i] = r.IntN(4) > 0
		}
	}
	if r.IntN(3) == 0 {
		m.BiasShape = broadcast()
		m.Bias = normals[F](r.Uint64(), product4(m.BiasShape))
		for i := range m.Bias {
			if r.IntN(4) == 0 {
				m.Bias[i] = F(math.Inf(-1))
			}
		}
	}
}

// randomDocuments returns the numbers of some documents in each row. Some rows have scattered documents.
func randomDocuments(r *rand.Rand, rows, keys int) []int {
	numbers := make([]int, rows*keys)
	for row := range rows {
		turn, every, scattered := r.IntN(5), 1+r.IntN(keys), r.IntN(4) == 0
		for j := range keys {
			if scattered {
				numbers[row*keys+j] = r.IntN(3)
			} else if numbers[row*keys+j] = j / every; j/every == turn {
				numbers[row*keys+j] = -1
			}
		}
	}
	return numbers
}

// randomBlocks returns Blocks with some full, some empty and some other blocks.
func randomBlocks(r *rand.Rand, queries, keys int) *Blocks {
	scale, salt := []int{1, 10, 64, 100}[r.IntN(4)], r.Uint64()
	return NewBlocks(queries, keys, func(t, j int) bool {
		return rand.New(rand.NewPCG(salt, uint64(t/scale*1000+j/scale))).IntN(2) == 0
	})
}

func product4(s [4]int) int { return s[0] * s[1] * s[2] * s[3] }

func (m *Mask[F]) String() string {
	return fmt.Sprintf("shape %v, causal %t, offset %d %d, window %+v, lengths %v, documents %v, blocks %t, allow %v, bias %v, slopes %v",
		m.Shape, m.Causal, m.Offset, m.Offsets, m.Window, m.KeyLengths, m.Documents, m.Blocks != nil, m.AllowShape, m.BiasShape, m.Slopes)
}

// naive applies the mask to the score of one query and one key, directly from the definitions.
func (m *Mask[F]) naive(score F, b, h, t, j int) F {
	inf := F(math.Inf(-1))
	p := t + m.Offset
	if m.Offsets != nil {
		p = t + m.Offsets[b]
	}
	index := func(s [4]int) int {
		i := 0
		for axis, x := range [4]int{b, h, t, j} {
			if i *= s[axis]; s[axis] > 1 {
				i += x
			}
		}
		return i
	}
	switch {
	case m.Causal && j > p,
		m.Window != nil && m.Window.Left >= 0 && j < p-m.Window.Left,
		m.Window != nil && m.Window.Right >= 0 && j > p+m.Window.Right,
		m.KeyLengths != nil && j >= m.KeyLengths[b],
		m.Blocks != nil && !m.Blocks.sees(p, j),
		m.Documents != nil && (p < 0 || p >= m.Shape[3] || m.Documents.numbers[b*m.Shape[3]+p] != m.Documents.numbers[b*m.Shape[3]+j]),
		m.Allow != nil && (j >= m.AllowShape[3] || !m.Allow[index(m.AllowShape)]),
		m.Bias != nil && (j >= m.BiasShape[3] || m.Bias[index(m.BiasShape)] == inf):
		return inf
	}
	if m.Slopes != nil {
		score -= m.Slopes[h] * F(math.Abs(float64(p-j)))
	}
	if m.Bias != nil {
		score += m.Bias[index(m.BiasShape)]
	}
	return score
}

// TestMaskSpan checks the range of keys that a query sees.
func TestMaskSpan(t *testing.T) {
	shape := [4]int{2, 1, 5, 8}
	type span struct{ b, t, start, end int }
	for name, c := range map[string]struct {
		mask  Mask[float32]
		spans []span
	}{
		"all":               {Mask[float32]{}, []span{{0, 0, 0, 8}, {1, 4, 0, 8}}},
		"causal":            {Mask[float32]{Causal: true}, []span{{0, 0, 0, 1}, {1, 4, 0, 5}}},
		"offset":            {Mask[float32]{Causal: true, Offset: 3}, []span{{0, 0, 0, 4}, {0, 4, 0, 8}}},
		"offset, past all":  {Mask[float32]{Causal: true, Offset: 20}, []span{{0, 0, 0, 8}}},
		"offset, before":    {Mask[float32]{Causal: true, Offset: -2}, []span{{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 1}, {0, 4, 0, 3}}},
		"offsets":           {Mask[float32]{Causal: true, Offset: 9, Offsets: []int{1, -4}}, []span{{0, 0, 0, 2}, {1, 3, 0, 0}, {1, 4, 0, 1}}},
		"offset alone":      {Mask[float32]{Offset: 3}, []span{{0, 0, 0, 8}}},
		"left":              {Mask[float32]{Window: &Window{Left: 1, Right: -1}}, []span{{0, 0, 0, 8}, {0, 1, 0, 8}, {0, 4, 3, 8}}},
		"right":             {Mask[float32]{Window: &Window{Left: -1, Right: 1}}, []span{{0, 0, 0, 2}, {0, 4, 0, 6}}},
		"itself":            {Mask[float32]{Window: &Window{}}, []span{{0, 0, 0, 1}, {0, 4, 4, 5}}},
		"both open":         {Mask[float32]{Window: &Window{Left: -1, Right: -1}}, []span{{0, 4, 0, 8}}},
		"causal window":     {Mask[float32]{Causal: true, Window: &Window{Left: 2, Right: 3}}, []span{{0, 0, 0, 1}, {0, 4, 2, 5}}},
		"window, offset":    {Mask[float32]{Window: &Window{Left: 2, Right: 1}, Offset: 3}, []span{{0, 0, 1, 5}, {0, 4, 5, 8}}},
		"window past all":   {Mask[float32]{Window: &Window{Left: 2, Right: 1}, Offset: 20}, []span{{0, 0, 8, 8}}},
		"window before":     {Mask[float32]{Window: &Window{Left: 2, Right: 1}, Offset: -20}, []span{{0, 4, 0, 0}}},
		"lengths":           {Mask[float32]{KeyLengths: []int{3, 0}}, []span{{0, 4, 0, 3}, {1, 4, 0, 0}}},
		"lengths, causal":   {Mask[float32]{Causal: true, KeyLengths: []int{3, 8}}, []span{{0, 1, 0, 2}, {0, 4, 0, 3}, {1, 4, 0, 5}}},
		"lengths, window":   {Mask[float32]{Window: &Window{Left: 1, Right: 0}, KeyLengths: []int{3, 4}}, []span{{0, 2, 1, 3}, {0, 4, 3, 3}, {1, 4, 3, 4}}},
		"allow":             {Mask[float32]{Allow: make([]bool, 6), AllowShape: [4]int{1, 1, 1, 6}}, []span{{0, 0, 0, 6}}},
		"bias, allow":       {Mask[float32]{Bias: make([]float32, 2), BiasShape: [4]int{1, 1, 1, 2}, Allow: make([]bool, 6), AllowShape: [4]int{1, 1, 1, 6}}, []span{{1, 4, 0, 2}}},
		"documents":         {Mask[float32]{Documents: documents(8, 1, 1, 1, 4, 4, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0)}, []span{{0, 0, 0, 3}, {0, 4, 3, 5}, {1, 2, 0, 8}}},
		"documents, causal": {Mask[float32]{Causal: true, Documents: documents(8, 1, 1, 1, 4, 4, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0)}, []span{{0, 2, 0, 3}, {0, 3, 3, 4}, {1, 2, 0, 3}}},
		"documents, offset": {Mask[float32]{Offset: 4, Documents: documents(8, 1, 1, 1, 4, 4, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0)}, []span{{0, 0, 3, 5}, {0, 3, 5, 8}, {0, 4, 0, 0}}},
		"scattered":         {Mask[float32]{Documents: documents(8, 1, 2, 2, 1, 4, 5, 4, 6, 0, 1, 0, 1, 0, 1, 0, 1)}, []span{{0, 0, 0, 4}, {0, 1, 1, 3}, {0, 4, 4, 7}, {1, 4, 0, 7}}},
		"largest offset":    {Mask[float32]{Causal: true, Window: &Window{Left: MaxOffset, Right: MaxOffset}, Offset: MaxOffset}, []span{{0, 0, 0, 8}, {0, 4, 4, 8}}},
		"smallest offset":   {Mask[float32]{Window: &Window{Left: MaxOffset, Right: MaxOffset}, Offset: -MaxOffset}, []span{{0, 0, 0, 1}, {0, 4, 0, 5}}},
		"largest, no right": {Mask[float32]{Window: &Window{Left: -1, Right: MaxOffset}, Offset: MaxOffset}, []span{{0, 4, 0, 8}}},
	} {
		c.mask.Shape = shape
		for _, s := range c.spans {
			if start, end := c.mask.span(s.b, s.t, s.t+1); start != s.start || end != s.end {
				t.Errorf("%s: query %d of element %d sees keys %d to %d, want %d to %d", name, s.t, s.b, start, end, s.start, s.end)
			}
		}
	}
}

func documents(keys int, numbers ...int) *Documents {
	d := &Documents{}
	d.Set(numbers, keys)
	return d
}

// TestMaskRanges compares three ranges with the naive mask, pair by pair: the keys that one query sees, the keys that
// several queries see, and the queries that see several keys.
func TestMaskRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Of(t), 6))
	for range 300 {
		m := Mask[float64]{Shape: [4]int{1 + r.IntN(2), 1, 1 + r.IntN(8), 1 + r.IntN(8)}}
		m.random(r)
		m.Slopes, m.Bias, m.Blocks = nil, nil, nil
		if m.Allow != nil { // only its last axis matters for spans
			for i := range m.Allow {
				m.Allow[i] = true
			}
		}
		scattered := m.Documents != nil && m.Documents.scattered
		b, queries, keys := r.IntN(m.Shape[0]), m.Shape[2], m.Shape[3]
		sees := func(t, j int) bool { return m.naive(0, b, 0, t, j) == 0 }
		for q := range queries {
			start, end := m.span(b, q, q+1)
			for j := range keys {
				if inside := start <= j && j < end; sees(q, j) != inside && !(inside && scattered) {
					t.Fatalf("%s: the span of query %d of batch element %d is keys %d to %d (exclusive), but the query sees key %d: %t", &m, q, b, start, end, j, sees(q, j))
				}
			}
		}
		t0 := r.IntN(queries)
		t1 := t0 + 1 + r.IntN(queries-t0)
		start, end := m.span(b, t0, t1)
		j0 := r.IntN(keys)
		j1 := j0 + 1 + r.IntN(keys-j0)
		first, last := m.queries(b, j0, j1)
		if start < 0 || start > end || end > keys || first < 0 || first > last || last > queries {
			t.Fatalf("%s: keys %d to %d, queries %d to %d, want ranges within the mask's shape", &m, start, end, first, last)
		}
		for q := range queries {
			for j := range keys {
				if !sees(q, j) {
					continue
				}
				if t0 <= q && q < t1 && (j < start || j >= end) {
					t.Fatalf("%s: queries %d to %d see keys %d to %d, but query %d sees key %d", &m, t0, t1, start, end, q, j)
				}
				if j0 <= j && j < j1 && (q < first || q >= last) {
					t.Fatalf("%s: keys %d to %d are seen by queries %d to %d, but key %d is seen by query %d", &m, j0, j1, first, last, j, q)
				}
			}
		}
	}
}

// TestMaskedSoftmax compares MaskedSoftmax with a plain softmax over the allowed keys, for random masks. The scores of
// other keys must not change the result.
func TestMaskedSoftmax(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testMaskedSoftmax[float32](t, 1e-6) })
	t.Run("float64", func(t *testing.T) { testMaskedSoftmax[float64](t, 1e-12) })
}

func testMaskedSoftmax[F Float](t *testing.T, tol float64) {
	r := rand.New(rand.NewPCG(testseed.Of(t), 8))
	for range 200 {
		m := Mask[F]{Shape: [4]int{1 + r.IntN(3), 1 + r.IntN(3), 1 + r.IntN(8), 1 + r.IntN(20)}}
		m.random(r)
		scores := normals[F](r.Uint64(), product4(m.Shape))
		w, want := normals[F](1, len(scores)), make([]float64, len(scores))
		for row := range len(scores) / m.Shape[3] {
			b, h, q := row/m.Shape[2]/m.Shape[1], row/m.Shape[2]%m.Shape[1], row%m.Shape[2]
			scores, exps, sum := scores[row*m.Shape[3]:][:m.Shape[3]], want[row*m.Shape[3]:][:m.Shape[3]], 0.0
			for j := range exps {
				exps[j] = math.Exp(float64(m.naive(scores[j], b, h, q, j)))
				if sum += exps[j]; exps[j] == 0 {
					scores[j] = []F{F(math.NaN()), F(math.Inf(1)), 1e30}[r.IntN(3)]
				}
			}
			for j := range exps {
				if exps[j] > 0 {
					exps[j] /= sum
				}
			}
		}
		MaskedSoftmax(0, w, scores, m)
		closeTo(t, m.String(), w, want, tol)
		for i := range w {
			if want[i] == 0 && w[i] != 0 {
				t.Fatalf("%s: masked element %d is %v, want 0", &m, i, w[i])
			}
		}
	}
}

func TestMaskScores(t *testing.T) {
	negInf := math.Inf(-1)
	m := Mask[float64]{Shape: [4]int{1, 1, 2, 4}, Causal: true, Offset: 1, Bias: []float64{0.5, negInf, 1, 1}, BiasShape: [4]int{1, 1, 1, 4}}
	scores := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	got := make([]float64, len(scores))
	MaskScores(0, got, scores, m)
	if want := []float64{1.5, negInf, negInf, negInf, 5.5, negInf, 8, negInf}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
