package layers_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// tensorCases lists Tensors with the shapes of their parameters, named a, b and c.
var tensorCases = []struct {
	name   string
	shapes [][]int
	tensor layers.Tensor
	want   []int // the shape of the file's tensor
}{
	{"one vector", [][]int{{3}}, layers.Tensor{}, []int{3}},
	{"one matrix", [][]int{{2, 3}}, layers.Tensor{}, []int{2, 3}},
	{"three axes", [][]int{{2, 3, 2}, {1, 3, 2}}, layers.Tensor{}, []int{3, 3, 2}},
	{"joined vectors", [][]int{{3}, {1}, {2}}, layers.Tensor{}, []int{6}},
	{"joined rows", [][]int{{2, 3}, {1, 3}, {4, 3}}, layers.Tensor{}, []int{7, 3}},
	{"groups of vectors", [][]int{{4}, {2}, {6}}, layers.Tensor{Groups: 2}, []int{12}},
	{"groups of rows", [][]int{{6, 2}, {3, 2}, {3, 2}}, layers.Tensor{Groups: 3}, []int{12, 2}},
	{"transposed", [][]int{{2, 3}}, layers.Tensor{Transposed: true}, []int{3, 2}},
	{"transposed rows", [][]int{{2, 3}, {1, 3}, {4, 3}}, layers.Tensor{Transposed: true}, []int{3, 7}},
	{"transposed groups", [][]int{{4, 3}, {2, 3}}, layers.Tensor{Transposed: true, Groups: 2}, []int{3, 6}},
	{"skipped rows", [][]int{{4, 3}}, layers.Tensor{SkipRows: 2}, []int{6, 3}},
	{"skipped numbers", [][]int{{4}}, layers.Tensor{SkipRows: 2}, []int{6}},
	{"shifted", [][]int{{3}}, layers.Tensor{Plus: 1}, []int{3}},
	{"everything", [][]int{{4, 3}, {2, 3}}, layers.Tensor{Groups: 2, Transposed: true, SkipRows: 1, Plus: 2}, []int{4, 6}},
	{"stacked", [][]int{{2, 3, 4}}, layers.Tensor{Stacked: 2}, []int{2, 3, 4}},
	{"stacked, transposed groups", [][]int{{2, 3, 4}, {2, 3, 4}}, layers.Tensor{Stacked: 2, Transposed: true, Groups: 3}, []int{2, 4, 6}},
	{"stacked groups of numbers", [][]int{{6}, {6}}, layers.Tensor{Stacked: 2, Groups: 3}, []int{2, 6}},
	{"stacked blocks, transposed", [][]int{{3, 300, 100}, {3, 100, 100}}, layers.Tensor{Stacked: 3, Transposed: true, Groups: 100}, []int{3, 100, 400}},
	{"several blocks of rows", [][]int{{700, 160}, {300, 160}}, layers.Tensor{Groups: 20, SkipRows: 700}, []int{1700, 160}},
	{"several blocks, transposed", [][]int{{700, 100}, {300, 100}}, layers.Tensor{Transposed: true, Groups: 100}, []int{100, 1000}},
	{"rows longer than a block", [][]int{{2, 140_001}, {1, 140_001}}, layers.Tensor{}, []int{3, 140_001}},
	{"rows longer than a block, transposed", [][]int{{70_000, 2}, {70_002, 2}}, layers.Tensor{Transposed: true, Groups: 2}, []int{2, 140_002}},
}

// inFile returns the values of a case's tensor in a file. It follows the doc comment of layers.Tensor, one number after
// the other.
func inFile(x layers.Tensor, p *layers.Params, t *testing.T, shape []int) []float64 {
	if n := x.Stacked; n > 0 {
		var all []float64
		for item := range n {
			one := must.Get(layers.NewParams(p.Dtype(), 1))(t)
			for _, name := range x.Params {
				q := p.Get(name).Value
				values, s := floats(t, q), q.Shape().Clone()
				if s[0] /= n; s[0] == 1 && len(s) > 1 {
					s = s[1:]
				}
				part := must.Get(one.New(name, layers.Ones(), s...))(t)
				must.Do(t, tensor.Copy(part.Value, as(p.Dtype(), dense(values[item*len(values)/n:][:len(values)/n], s...))))
			}
			y := x
			y.Stacked = 0
			all = append(all, inFile(y, one, t, shape[1:])...)
		}
		return all
	}
	var rows [][]float64
	groups := max(x.Groups, 1)
	for g := range groups {
		for _, name := range x.Params {
			values, n := floats(t, p.Get(name).Value), p.Get(name).Value.Shape()[0]
			width := len(values) / n
			for row := g * n / groups; row < (g+1)*n/groups; row++ {
				rows = append(rows, values[row*width:(row+1)*width])
			}
		}
	}
	cols := 1
	for _, d := range shape[1:] {
		cols *= d
	}
	want := make([]float64, shape[0]*cols)
	for i := range want[x.SkipRows*cols:] {
		row, col := i/cols, i%cols
		if x.Transposed {
			row, col = col, row
		}
		want[x.SkipRows*cols+i] = rows[row][col] - x.Plus
	}
	return want
}

// TestTensors saves parameters with each Tensor, compares the file with the definition, and loads it into other
// parameters, blank ones too.
func TestTensors(t *testing.T) {
	for _, tc := range tensorCases {
		for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			name := fmt.Sprintf("%s/%v", tc.name, dtype)
			if testing.Short() && testseed.LeftOut(name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				x := tc.tensor
				x.Names = []string{"file"}
				model := func(blank bool) *layers.Params {
					p := must.Get(layers.NewParams(dtype, 1))(t)
					scope := p
					if blank {
						scope = p.Blank()
					}
					for i, shape := range tc.shapes {
						must.Get(scope.New(string(rune('a'+i)), layers.Ones(), shape...))(t)
					}
					return p
				}
				p, n := model(false), 0
				x.Params = nil
				for _, q := range p.All() {
					x.Params = append(x.Params, q.Name)
					for i := range q.Value.Shape().TotalSize() {
						n++ // small integers, so that Plus rounds nothing
						if dtype == tensor.Float32 {
							q.Value.Float32s()[i] = float32(n)
						} else {
							q.Value.Float64s()[i] = float64(n)
						}
					}
				}
				path := filepath.Join(t.TempDir(), "x.safetensors")
				must.Do(t, p.SaveTensors(path, []layers.Tensor{x}, nil))
				tensors, _, err := safetensors.ReadFile(path)
				must.Do(t, err)
				got := tensor.New(tensor.WithShape(tensors[0].Shape...), tensor.WithBacking(tensors[0].Data))
				if len(tensors) != 1 || !got.Shape().Eq(tensor.Shape(tc.want)) {
					t.Fatalf("got %d tensors, the first of shape %v, want one of %v", len(tensors), got.Shape(), tc.want)
				}
				near(t, "file", floats(t, got), inFile(x, p, t, tc.want), 0)
				for _, blank := range []bool{false, true} {
					q := model(blank)
					must.Get(q.Load(path, layers.LoadOptions{Tensors: []layers.Tensor{x}}))(t)
					if !sameWeights(weightBits(q), weightBits(p)) {
						t.Errorf("blank %v: the loaded values differ from the saved ones", blank)
					}
				}
			})
		}
	}
}

// TestTensorErrors checks the errors for tables that don't fit their parameters.
func TestTensorErrors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		shapes [][]int
		tensor layers.Tensor
		want   string
	}{
		{"a transposed vector", [][]int{{2}}, layers.Tensor{Transposed: true}, "must be matrices"},
		{"a transposed cube", [][]int{{2, 2, 2}}, layers.Tensor{Transposed: true}, "must be matrices"},
		{"rows below 0", [][]int{{2, 2}}, layers.Tensor{SkipRows: -1}, "SkipRows must be from 0"},
		{"too many rows", [][]int{{2, 2}}, layers.Tensor{SkipRows: math.MaxInt}, "SkipRows must be from 0"},
		{"infinite", [][]int{{2}}, layers.Tensor{Plus: math.Inf(1)}, "Plus must be finite"},
		{"stacked", [][]int{{3, 2}}, layers.Tensor{Stacked: 2}, `the first axis of parameter "a" must be a multiple of Stacked = 2, got shape (3, 2)`},
		{"stacked below 0", [][]int{{3, 2}}, layers.Tensor{Stacked: -1}, "its Stacked must be at least 0"},
		{"a single one too many", [][]int{{3, 2}}, layers.Tensor{Stacked: 3, Single: 4}, "its Single at most Stacked, got 3 and 4"},
		{"stacked and skipped", [][]int{{3, 2}}, layers.Tensor{Stacked: 3, SkipRows: 1}, "SkipRows and Stacked"},
		{"groups", [][]int{{4, 2}, {3, 2}}, layers.Tensor{Groups: 2}, `parameter "b" must have 2 axes, and the first must be a multiple of Groups = 2, got shape (3, 2)`},
		{"other axes", [][]int{{4, 2}, {4}}, layers.Tensor{}, `parameter "b" must have 2 axes`},
		{"other columns", [][]int{{4, 2}, {4, 3}}, layers.Tensor{}, `must have the same size in all axes but the first, got "a" of shape (4, 2) and "b" of shape (4, 3)`},
		{"too large to save", [][]int{{2}}, layers.Tensor{Plus: math.MaxFloat64}, "isn't finite for a value x of its parameters"},
	} {
		p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
		tc.tensor.Names = []string{"file"}
		for i, shape := range tc.shapes {
			q := must.Get(p.New(string(rune('a'+i)), layers.Normal(1e3), shape...))(t)
			tc.tensor.Params = append(tc.tensor.Params, q.Name)
		}
		table := []layers.Tensor{tc.tensor}
		must.Fail(t, p.SaveTensors(filepath.Join(t.TempDir(), "x"), table, nil), `tensor "file"`, tc.want)
		if tc.name != "too large to save" {
			b := weightFileOf(t)
			must.Refuse(p.LoadFrom(bytes.NewReader(b), int64(len(b)), layers.LoadOptions{Tensors: table}))(t, `tensor "file"`, tc.want)
		}
	}
	p := newParams(t)
	must.Get(p.New("a", layers.Init{}, 2))(t)
	must.Fail(t, p.SaveTensors(filepath.Join(t.TempDir(), "x"), []layers.Tensor{}, nil), `no Tensor holds the parameter "a"`)
}

// TestSingleTensors saves and loads matrices of a parameter that are tensors of their own.
func TestSingleTensors(t *testing.T) {
	model := func(init layers.Init) *layers.Params {
		p := newParams(t)
		must.Get(p.New("a", init, 3, 2, 4))(t)
		must.Get(p.New("b", init, 6))(t)
		return p
	}
	table := []layers.Tensor{{Names: []string{"b"}, Params: []string{"b"}, Stacked: 3}}
	for i := range 3 {
		table = append(table, layers.Tensor{Names: []string{fmt.Sprint("a", i)}, Params: []string{"a"}, Stacked: 3, Single: i + 1, Transposed: true})
	}
	p, path := model(layers.Normal(1)), filepath.Join(t.TempDir(), "x.safetensors")
	must.Do(t, p.SaveTensors(path, table, nil))
	tensors, _, err := safetensors.ReadFile(path)
	must.Do(t, err)
	for i, x := range tensors {
		if want := [][]int{{4, 2}, {4, 2}, {4, 2}, {3, 2}}[i]; !tensor.Shape(x.Shape).Eq(tensor.Shape(want)) {
			t.Errorf("%s has shape %v, want %v", x.Name, x.Shape, want)
		}
	}
	near(t, "row 1, column 0 of matrix 2", []float64{tensors[2].Data.([]float64)[1]}, []float64{p.Get("a").Value.Float64s()[20]}, 0)
	q := model(layers.Zeros())
	must.Get(q.Load(path, layers.LoadOptions{Tensors: table}))(t)
	if !sameWeights(weightBits(q), weightBits(p)) {
		t.Error("the loaded values differ from the saved ones")
	}
	must.Fail(t, p.SaveTensors(path, table[:3], nil), `no Tensor holds the parameter "a"`)
	must.Fail(t, p.SaveTensors(path, append(table, layers.Tensor{Names: []string{"c"}, Params: []string{"a"}}), nil), `both hold the parameter "a"`)
}

// TestLoadFS loads weights from several files. After an error, parameters that aren't blank keep their values.
func TestLoadFS(t *testing.T) {
	named := func(name string, data any) safetensors.Tensor {
		return safetensors.Tensor{Name: name, Shape: []int{2}, Data: data}
	}
	nan := float32(math.NaN())
	one := func(tensors ...safetensors.Tensor) []byte { return weightFileOf(t, tensors...) }
	half := []byte(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},` +
		`"mask":{"dtype":"BOOL","shape":[2],"data_offsets":[8,10]},"a8":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[10,12]}}`)
	halves := append(append([]byte{byte(len(half)), byte(len(half) >> 8), 0, 0, 0, 0, 0, 0}, half...), 0, 0x3c, 0, 0x40, 0x40, 0x40, 0x80, 0x40, 1, 0, 1, 2)
	flipped := one(named("b", []float32{3, 4}))
	flipped[len(flipped)-1] ^= 1
	whole := one(named("b", []float32{3, 4}))
	for _, tc := range []struct {
		name   string
		first  []byte
		second []byte // nil: there is no second file
		names  string
		want   string // an error, or empty
	}{
		{"one file", one(named("a", []float32{1, 2}), named("b", []float64{3, 4})), nil, "1", ""},
		{"half precision and other types", halves, nil, "1", ""},
		{"two files", one(named("a", []float64{1, 2})), whole, "1 2", ""},
		{"another order", one(named("a", []float64{1, 2})), whole, "2 1", ""},
		{"an empty file", one(), one(named("a", []float32{1, 2}), named("b", []float32{3, 4})), "1 2", ""},
		{"no file", one(), nil, "", `missing: "a" of shape (2), "b" of shape (2)`},
		{"a file missing", one(named("a", []float64{1, 2})), nil, "1 2", "2"},
		{"a path that leaves the folder", one(named("a", []float64{1, 2})), nil, "1 ../2", "../2"},
		{"the second isn't given", one(named("a", []float64{1, 2})), whole, "1", `missing: "b" of shape (2)`},
		{"one tensor in both", one(named("a", []float64{1, 2}), named("b", []float32{3, 4})), whole, "1 2", `the tensor "b" is in 1 and in 2`},
		{"the same file twice", one(named("a", []float64{1, 2}), named("b", []float32{3, 4})), nil, "1 1", "is in 1 and in 1"},
		{"NaN in the second", one(named("a", []float64{1, 2})), one(named("b", []float32{3, nan})), "1 2", `2: values of tensor "b": element 1 of 2 is NaN`},
		{"a flipped bit in the second", one(named("a", []float64{1, 2})), flipped, "1 2", "2: not a readable safetensors file: it has changed"},
		{"the second is cut short", one(named("a", []float64{1, 2})), whole[:len(whole)-1], "1 2", "2: not a readable safetensors file: header: expected 8 bytes of values"},
		{"integers needed", one(named("a", []float64{1, 2})), one(named("b", []int64{3, 4})), "1 2", `"b" must hold floating-point values, got I64`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fsys := fstest.MapFS{"1": {Data: tc.first}}
			if tc.second != nil {
				fsys["2"] = &fstest.MapFile{Data: tc.second}
			}
			for _, blank := range []bool{false, true} {
				p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
				scope := p
				if blank {
					scope = p.Blank()
				}
				must.Get(scope.New("a", layers.Ones(), 2))(t)
				must.Get(scope.New("b", layers.Ones(), 2))(t)
				before := weightBits(p)
				options := layers.LoadOptions{Ignore: tc.name == "half precision and other types"}
				l, err := p.LoadFS(fsys, strings.Fields(tc.names), options)
				if tc.want != "" {
					must.Fail(t, err, tc.want)
					if !blank && !sameWeights(weightBits(p), before) {
						t.Error("the error changed parameters")
					}
					continue
				}
				must.Do(t, err)
				near(t, "a", floats(t, p.Get("a").Value), []float64{1, 2}, 0)
				near(t, "b", floats(t, p.Get("b").Value), []float64{3, 4}, 0)
				if options.Ignore && len(l.Unused) != 2 {
					t.Errorf("got unused tensors %q, want two", l.Unused)
				}
			}
		})
	}
}

// shrinking is a file system whose file changes after it was opened n times.
type shrinking struct {
	first, then fstest.MapFS
	n           *int
}

func (s shrinking) Open(name string) (fs.File, error) {
	if *s.n--; *s.n >= 0 {
		return s.first.Open(name)
	}
	return s.then.Open(name)
}

func (s shrinking) Stat(name string) (fs.FileInfo, error) { return s.first.Stat(name) }

// TestLoadWhileTheFileChanges replaces a file between the times that it is opened.
func TestLoadWhileTheFileChanges(t *testing.T) {
	good := fstest.MapFS{"f": {Data: weightFile(t, "a", []float32{1, 2})}}
	for name, other := range map[string][]byte{
		"no tensor":     weightFileOf(t),
		"another shape": weightFileOf(t, safetensors.Tensor{Name: "a", Shape: []int{3}, Data: []float32{1, 2, 3}}),
		"integers":      weightFile(t, "a", []int64{1, 2}),
	} {
		for n := 1; n <= 2; n++ {
			p := newParams(t)
			must.Get(p.New("a", layers.Ones(), 2))(t)
			opened := n
			must.Refuse(p.LoadFS(shrinking{good, fstest.MapFS{"f": {Data: other}}, &opened}, []string{"f"}, layers.LoadOptions{}))(t, "the file was changed while it was read")
			if floats(t, p.Get("a").Value)[1] != 1 {
				t.Errorf("%s: the error changed the parameter", name)
			}
		}
	}
}
