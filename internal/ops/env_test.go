package ops

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
)

// leaf returns an input of shape (2) that holds a and b.
func leaf(g *G.ExprGraph, name string, a, b float64) *G.Node {
	return G.NewVector(g, tensor.Float64, G.WithShape(2), G.WithName(name),
		G.WithValue(tensor.New(tensor.WithShape(2), tensor.WithBacking([]float64{a, b}))))
}

// twins returns the names of two leaves with different hashes. If f is applied to the first leaf and h to the second,
// the results have equal hashes. twins tries the names in found first. If they fail, because an op's hash has changed,
// it searches for other names.
func twins(t *testing.T, f, h func(leaf *G.Node) (*G.Node, error), found [2]string) (a, b string) {
	t.Helper()
	hash := func(f func(leaf *G.Node) (*G.Node, error), name string) uint32 {
		n := must.Get(f(leaf(G.NewGraph(), name, 1, 2)))(t)
		return n.Hashcode()
	}
	if hash(f, found[0]) == hash(h, found[1]) {
		return found[0], found[1]
	}
	first := map[uint32]string{}
	const limit = 300_000 // 65,000 names each for f and h give about 2³² pairs
	for i := range limit {
		name := fmt.Sprint("x", i)
		first[hash(f, name)] = name
		if a := first[hash(h, "y"+name)]; a != "" {
			t.Logf("a search found %q and %q: put them into the test to save seconds", a, "y"+name)
			return a, "y" + name
		}
	}
	t.Fatalf("no collision among %d names", limit)
	return "", ""
}

func relu(x *G.Node) (*G.Node, error) { return Activate(&Env{}, x, ReLU) }

// TestEqualHashes builds Heed nodes whose unsalted hashes equal the hashes of other nodes. Gorgonia must not merge
// them.
func TestEqualHashes(t *testing.T) {
	for name, tc := range map[string]struct {
		first func(*G.Node) (*G.Node, error)
		found [2]string
	}{
		"the same op":     {relu, [2]string{"x8312", "yx87644"}},
		"Gorgonia's node": {G.Neg, [2]string{"x67485", "yx72873"}},
	} {
		t.Run(name, func(t *testing.T) {
			first := tc.first
			a, b := twins(t, first, relu, tc.found)
			g := G.NewGraph()
			e := &Env{}
			x, y := leaf(g, a, 1, -2), leaf(g, b, -3, 4)
			other := must.Get(first(x))(t)
			if name == "the same op" {
				other = must.Get(Activate(e, x, ReLU))(t)
			}
			n := must.Get(Activate(e, y, ReLU))(t)
			if n == other || n.Hashcode() == other.Hashcode() {
				t.Fatal("Gorgonia would merge the two nodes")
			}
			if again, err := Activate(e, y, ReLU); err != nil || again != n {
				t.Errorf("the same op on the same input gives %v, want the existing node, %v (error %v)", again, n, err)
			}
			must.Do(t, Distinct(g))
			var v G.Value
			G.Read(n, &v)
			vm := G.NewTapeMachine(g)
			defer vm.Close()
			must.Do(t, vm.RunAll())
			if got := v.Data().([]float64); got[0] != 0 || got[1] != 4 {
				t.Errorf("relu of (-3, 4) is %v, want [0 4]", got)
			}
		})
	}
}

// TestEqualHashesOfLeaves builds two inputs with equal hashes. Inputs have no salt, so Distinct must report them.
func TestEqualHashesOfLeaves(t *testing.T) {
	g := G.NewGraph()
	var inputs G.Nodes
	for _, name := range []string{"t77989", "t1101292"} {
		inputs = append(inputs, G.NewMatrix(g, tensor.Float64, G.WithShape(2, 2), G.WithName(name), G.WithInit(G.Ones())))
	}
	var collision *CollisionError
	if err := Distinct(g); !errors.As(err, &collision) || collision.A != inputs[0] || collision.B != inputs[1] {
		t.Errorf("two inputs with equal hashes: got the error %v, want a *CollisionError with both inputs", err)
	}
	if inputs[0].Hashcode() != inputs[1].Hashcode() {
		t.Error("the inputs' hashes differ, so the test checks nothing")
	}
}

// TestCollisionErrorNamesInputs checks which inputs the error tells users to rename: the ones that only one of the two
// nodes depends on, or all if there are none.
func TestCollisionErrorNamesInputs(t *testing.T) {
	g := G.NewGraph()
	inputs := func(name string) *G.Node { return G.NewMatrix(g, tensor.Float64, G.WithShape(2, 2), G.WithName(name)) }
	tanh := G.Must(G.Tanh(inputs("query110675")))
	exp := G.Must(G.Exp(inputs("key145628")))
	var found *CollisionError
	if err := Distinct(g); !errors.As(err, &found) || found.A != tanh || found.B != exp {
		t.Fatalf("two nodes with equal hashes: got the error %v, want a *CollisionError with both nodes", err)
	}
	both := G.Must(G.Mul(found.A, found.B))
	negated := G.Must(G.Neg(both))
	many := both
	for _, name := range []string{"a", "b", "c"} {
		many = G.Must(G.Add(many, inputs(name)))
	}
	constant := g.AddNode(G.NewConstant(2.0))
	for _, tc := range []struct {
		name string
		a, b *G.Node
		want string
	}{
		{"different inputs", tanh, exp, `: "query110675" of shape (2, 2), "key145628" of shape (2, 2)`},
		{"one input more", tanh, both, `: "key145628" of shape (2, 2)`},
		{"the same inputs", both, negated, `: "query110675" of shape (2, 2), "key145628" of shape (2, 2)`},
		{"many inputs", tanh, many, `: "key145628" of shape (2, 2), "a" of shape (2, 2), "b" of shape (2, 2), and 1 more`},
		{"no inputs", constant, constant, "would compute only one of them"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := (&CollisionError{tc.a, tc.b}).Error()
			if !strings.HasSuffix(got, tc.want) || tc.a != tc.b && !strings.Contains(got, "another name") {
				t.Errorf("got %q, want %q at its end", got, tc.want)
			}
		})
	}
}

// TestNodeHash compares nodeHash with Gorgonia's hash, for every kind of type and shape.
func TestNodeHash(t *testing.T) {
	g := G.NewGraph()
	e := &Env{Training: true}
	ints := G.NewMatrix(g, tensor.Int, G.WithShape(2, 3), G.WithName("ids"))
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for _, shape := range []tensor.Shape{{1}, {3}, {1, 1}, {3, 1}, {1, 3}, {2, 3}, {2, 1, 3}, {1, 1, 1, 1}, {2, 3, 4, 5}} {
			x := G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName(fmt.Sprint("x", shape, dt)))
			for _, f := range []func() (*G.Node, error){
				func() (*G.Node, error) { return Activate(e, x, GELU) },
				func() (*G.Node, error) { return Add(e, x, x) },
				func() (*G.Node, error) { return Sum(e, x) },
				func() (*G.Node, error) { return Dropout(e, x, 0.5) },
				func() (*G.Node, error) { return AddInt(e, ints, 1) },
			} {
				n, err := f()
				if err != nil {
					continue // the op doesn't support this rank
				}
				if o := n.Op().(*op); o.nodeHash() != n.Hashcode() {
					t.Errorf("%v: hash %#x, Gorgonia's is %#x", n, o.nodeHash(), n.Hashcode())
				}
			}
		}
	}
}
