package ops

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// A Mask defines which keys each query may attend to. A query may attend to a key if every field of the Mask allows it;
// the zero Mask allows all keys. Query i of batch element b has position p = i + Offset, or i + Offsets[b]. Package
// layers converts its own Mask to this type.
type Mask struct {
	Causal     bool           // query i sees key j if j ≤ p
	Window     *Window        // limits the distance of keys from the query; nil means no limit
	Offset     int            // added to every query's position
	Offsets    *G.Node        // int, shape (B): one offset per batch element, in place of Offset
	KeyLengths *G.Node        // int, shape (B): the number of valid keys of each batch element
	Documents  *G.Node        // int, shape (B, S): the document of each key; query i belongs to the document of the key at p
	Blocks     *kernel.Blocks // query i sees key j if Blocks has it for the query at p; nil means all
	Allow      *G.Node        // bool, broadcast to (B, H, T, S): true means attend
	Bias       *G.Node        // dtype of the scores; broadcast to (B, H, T, S) and added to the scores; −Inf masks
	Slopes     []float64      // shape (H): −Slopes[h]·|p − j| is added to the scores
}

// A Window limits the distance of keys from the query.
type Window = kernel.Window

// Check checks the mask for scores of the given shape. The argument like is a node with the scores' dtype, in their
// graph. Errors use the field names of layers.Mask.
func (m Mask) Check(name string, scores tensor.Shape, like *G.Node) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: "+format, append([]any{name}, args...)...)
	}
	for _, p := range []struct {
		what string
		n    *G.Node
		want tensor.Dtype
	}{
		{"Mask.KeyLengths", m.KeyLengths, tensor.Int},
		{"Mask.Offsets", m.Offsets, tensor.Int},
		{"Mask.Documents", m.Documents, tensor.Int},
		{"Mask.Allow (true means attend)", m.Allow, tensor.Bool},
		{"Mask.Bias", m.Bias, like.Dtype()},
	} {
		switch {
		case p.n == nil:
			continue
		case p.n.Dtype() != p.want:
			return fail("%s must be %v, got %v", p.what, p.want, p.n.Dtype())
		case p.n.Graph() != like.Graph():
			return fail("%s belongs to another graph, not the query's", p.what)
		}
		if p.n == m.Documents {
			if err := checkDocuments(name, p.n, scores); err != nil {
				return err
			}
			continue
		}
		if p.want == tensor.Int {
			if err := hasShape(name, p.what, p.n, full(scores)[0]); err != nil {
				return err
			}
			continue
		}
		mask := p.n.Shape()
		if _, ok := fullMask(mask, scores); !ok {
			hint := ""
			if len(mask) == 2 && len(scores) == 4 && mask[0] == scores[0] && mask[1] == scores[3] {
				hint = fmt.Sprintf(": a mask with one row per batch element must have shape (%d, 1, 1, %d)", mask[0], mask[1])
			}
			return fail("%s must broadcast, right-aligned, to the scores' shape %v, got %v%s", p.what, scores, mask, hint)
		}
	}
	if m.Offset != clampOffset(m.Offset) {
		return fail("Mask.Offset must be between −%d and %d, got %d", kernel.MaxOffset, kernel.MaxOffset, m.Offset)
	}
	if m.Offset != 0 && m.Offsets != nil {
		return fail("Mask.Offset must be 0 if Mask.Offsets is set, got %d", m.Offset)
	}
	if w := m.Window; w != nil && (w.Left < -1 || w.Right < -1) {
		return fail("the sides of Mask.Window must be at least 0, or −1 for no limit, got %+v", *w)
	}
	if m.Blocks != nil {
		queries, keys := full(scores)[2]+m.Offset, full(scores)[3]
		if T, S := m.Blocks.Size(); S < keys || m.Offsets == nil && T < queries {
			return fail("Mask.Blocks must have all positions of queries and all keys, at least (T, S) = (%d, %d), got (%d, %d)", queries, keys, T, S)
		}
	}
	heads := full(scores)[1]
	if m.Slopes != nil && len(m.Slopes) != heads {
		return fail("Mask.Slopes must have one value for each of the %d heads, got %d", heads, len(m.Slopes))
	}
	for h, x := range m.Slopes {
		if !(math.Abs(x) <= Largest) {
			return fail("Mask.Slopes must be finite and between −%v and %v, got %v for head %d", Largest, Largest, x, h)
		}
	}
	return nil
}

// checkDocuments checks the shape of Documents.
func checkDocuments(name string, n *G.Node, scores tensor.Shape) error {
	batch, keys := full(scores)[0], full(scores)[3]
	if s := n.Shape(); len(s) == 1 && batch == 1 && s[0] == keys {
		return nil
	}
	return hasShape(name, "Mask.Documents, with a number for each key,", n, batch, keys)
}

// String describes the mask in the names of ops. For a field that is a node, it shows only whether the field is set.
func (m Mask) String() string {
	window := ""
	if m.Window != nil {
		window = fmt.Sprint(*m.Window)
	}
	blocks := ""
	if m.Blocks != nil {
		blocks = fmt.Sprintf("%p", m.Blocks)
	}
	return fmt.Sprintf("(%s%t,%t,%t,%t,%t,%d,%t,%s,%v)",
		blocks, m.Causal, m.KeyLengths != nil, m.Documents != nil, m.Allow != nil, m.Bias != nil, m.Offset, m.Offsets != nil, window, m.Slopes)
}

// full returns the shape of scores as (B, H, T, S). A missing axis has size 1.
func full(s tensor.Shape) [4]int {
	switch len(s) {
	case 2:
		return [4]int{1, 1, s[0], s[1]}
	case 3:
		return [4]int{s[0], 1, s[1], s[2]}
	}
	return [4]int{s[0], s[1], s[2], s[3]}
}

// fullMask extends a mask's shape to four axes, right-aligned. A missing axis has size 1. If the scores have three
// axes, so no head axis, a mask with three axes has no head axis either. The result ok reports whether the mask
// broadcasts to the scores.
func fullMask(mask, scores tensor.Shape) (out [4]int, ok bool) {
	out = [4]int{1, 1, 1, 1}
	if len(mask) < 1 || len(mask) > len(scores) {
		return out, false
	}
	copy(out[4-len(mask):], mask)
	if len(scores) == 3 && len(mask) == 3 {
		out = [4]int{mask[0], 1, mask[1], mask[2]}
	}
	want := full(scores)
	for i := range 3 {
		if out[i] != 1 && out[i] != want[i] {
			return out, false
		}
	}
	return out, 1 <= out[3] && out[3] <= want[3]
}

// maskInputs is a mask for an op: the constant part, and the nodes in the order of the op's inputs.
type maskInputs[F kernel.Float] struct {
	Mask
	known kernel.Mask[F]
	nodes G.Nodes
}

// inputsOf converts a mask that Check has accepted for scores of the given shape.
func inputsOf[F kernel.Float](m Mask, scores tensor.Shape) maskInputs[F] {
	inputs := maskInputs[F]{Mask: m, known: kernel.Mask[F]{Shape: full(scores), Causal: m.Causal, Offset: m.Offset, Blocks: m.Blocks}}
	if w := m.Window; w != nil {
		inputs.known.Window = &Window{Left: clampOffset(w.Left), Right: clampOffset(w.Right)}
	}
	for _, x := range m.Slopes {
		inputs.known.Slopes = append(inputs.known.Slopes, F(x))
	}
	if m.Documents != nil {
		inputs.known.Documents = &kernel.Documents{}
	}
	if m.Allow != nil {
		inputs.known.AllowShape, _ = fullMask(m.Allow.Shape(), scores)
	}
	if m.Bias != nil {
		inputs.known.BiasShape, _ = fullMask(m.Bias.Shape(), scores)
	}
	for _, n := range []*G.Node{m.Bias, m.KeyLengths, m.Offsets, m.Documents, m.Allow} { // the bias, which has a gradient, comes first
		if n != nil {
			inputs.nodes = append(inputs.nodes, n)
		}
	}
	return inputs
}

func clampOffset(x int) int { return min(max(x, -kernel.MaxOffset), kernel.MaxOffset) }

// read returns the mask with the values of m.nodes.
func (m *maskInputs[F]) read(values []G.Value) kernel.Mask[F] {
	k := m.known
	if m.Bias != nil {
		k.Bias = elements[F](values[0], volume(k.BiasShape[:]))
		values = values[1:]
	}
	if m.KeyLengths != nil {
		k.KeyLengths = elements[int](values[0], k.Shape[0])
		for b, n := range k.KeyLengths {
			if n < 0 || n > k.Shape[3] {
				fail("key length %d of batch element %d isn't between 0 and the %d keys", n, b, k.Shape[3])
			}
		}
		values = values[1:]
	}
	if m.Offsets != nil {
		k.Offsets = elements[int](values[0], k.Shape[0])
		for b, n := range k.Offsets {
			if n != clampOffset(n) {
				fail("offset %d of batch element %d isn't between −%d and %[3]d", n, b, kernel.MaxOffset)
			}
		}
		values = values[1:]
	}
	if m.Documents != nil {
		k.Documents.Set(elements[int](values[0], k.Shape[0]*k.Shape[3]), k.Shape[3])
		values = values[1:]
	}
	if m.Allow != nil {
		k.Allow = elements[bool](values[0], volume(k.AllowShape[:]))
	}
	return k
}

// MaskScores adds the mask's bias and slopes to scores of shape (T, S), (B, T, S) or (B, H, T, S), and sets masked
// scores to −Inf. Softmax of the result gives the attention weights. If the result for a score is −Inf, the gradient of
// the score is zero. Errors during a run begin with layer.
func MaskScores(e *Env, layer string, scores *G.Node, m Mask) (*G.Node, error) {
	return ByDtype(scores, maskScores[float32], maskScores[float64])(e, layer, scores, m)
}

func maskScores[F kernel.Float](e *Env, layer string, scores *G.Node, m Mask) (*G.Node, error) {
	return maskedOp(e, "mask scores", layer, scores, m, kernel.MaskScores[F], maskScoresGrad[F])
}

func maskScoresGrad[F kernel.Float](_ int, ds, out, g []F, _ int) {
	for i, x := range out {
		if ds[i] = g[i]; math.IsInf(float64(x), -1) {
			ds[i] = 0
		}
	}
}

// maskedOp checks scores and a mask, and adds an op on them. The output has the scores' shape. The function backward
// computes the gradient ds of the scores from the output out and its gradient g, for rows of the given width. The
// gradient of the mask's bias is the gradient of the scores, summed over the broadcast axes.
func maskedOp[F kernel.Float](e *Env, name, layer string, scores *G.Node, m Mask, forward func(cores int, out, scores []F, m kernel.Mask[F]), backward func(cores int, ds, out, g []F, width int)) (*G.Node, error) {
	shape := scores.Shape()
	if err := CheckFloat(name, "the scores", scores); err != nil {
		return nil, err
	}
	if len(shape) < 2 || len(shape) > 4 {
		return nil, fmt.Errorf("%s: the scores must have shape (T, S), (B, T, S) or (B, H, T, S), got %v", name, shape)
	}
	if err := m.Check(name, shape, scores); err != nil {
		return nil, err
	}
	mask := inputsOf[F](m, shape)
	o := newOp(fmt.Sprintf("%s%v%v", name, shape, m), shape, func(out []F, values []G.Value) {
		scores := elements[F](values[0], len(out))
		forward(e.Cores, out, scores, mask.read(values[1:]))
	})
	o.layer, o.wrt = layer, 1
	if m.Bias != nil {
		o.wrt = 2
	}
	o.grad = func(_ G.Nodes, out, g *G.Node) (G.Nodes, error) {
		ds := newOp(fmt.Sprintf("%s.dscores%v", name, shape), shape, func(ds []F, values []G.Value) {
			out, g := read2[F](values, len(ds), len(ds))
			backward(e.Cores, ds, out, g, shape[len(shape)-1])
		})
		n, err := e.apply(ds, out, g)
		if err != nil || m.Bias == nil || !e.wants(m.Bias) {
			return G.Nodes{n}, err
		}
		biasShape := m.Bias.Shape()
		db, err := e.apply(newOp(fmt.Sprintf("mask.dbias%v%v", shape, biasShape), biasShape, func(db []F, values []G.Value) {
			ds := elements[F](values[0], volume(mask.known.Shape[:]))
			kernel.SumBroadcast(db, ds, mask.known.BiasShape, mask.known.Shape)
		}), n)
		return G.Nodes{n, db}, err
	}
	return e.apply(o, append(G.Nodes{scores}, mask.nodes...)...)
}
