package layers

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/safetensors"
)

// A Tensor says how one tensor of a file holds parameters. A list of Tensors is a table for LoadOptions.Tensors and
// Params.SaveTensors. PyTorch returns one, whose names a program may change.
type Tensor struct {
	Names  []string // names in the file: any one of them is read, the first that the file has; the first is written
	Params []string // full names of the parameters, joined along their first axis in this order

	// Groups is the number of groups of rows. Each group has the same share of every parameter: with 2 groups, the
	// first halves of all parameters come before their second halves. GPT-NeoX has one group per head, each with rows
	// for the query, the key and the value. 0 means 1.
	Groups int

	Transposed bool // the file has the transposed matrix of the joined parameters
	SkipRows   int  // rows at the start of the file's tensor that no parameter holds; they are written as zeros
	// Stacked, if not 0, is the number of matrices or vectors that each parameter has along its first axis, such as the
	// weights of experts. The other fields are for each of them, and the file's tensor has them along an axis in front.
	// With Single, counted from 1, the file's tensor has only this one of them, without the axis.
	Stacked, Single int

	Optional  bool // a file may lack the tensor; then the parameters keep their values
	Elsewhere bool // SaveTensors leaves out the tensor, because another file has it

	Plus float64 // the parameters are x + Plus for the file's values x
}

// ownTensors returns the table with a tensor for each parameter, with the parameter's name.
func (s *paramSet) ownTensors() (table []Tensor) {
	for _, q := range s.list {
		table = append(table, Tensor{Names: []string{q.Name}, Params: []string{q.Name}})
	}
	return table
}

// A mapping is a checked Tensor with its parameters.
type mapping[T float32 | float64] struct {
	Tensor
	parts      []part[T]
	shape      tensor.Shape // of the file's tensor
	count      int          // number of matrices in the file's tensor
	rows, cols int          // of the file's tensor, or of each of its matrices, without SkipRows
	segments   []segment
}

type part[T float32 | float64] struct {
	*Param
	values []T
	shape  tensor.Shape // of the parameter, or of each of its matrices
	cols   int
}

// A segment is a range of rows, or of columns if it is Transposed, of a file's tensor that belong to one part.
type segment struct {
	part       int
	begin, end int // in the file's tensor
	shift      int // plus an index in the file's tensor is the row of the part
}

// mappings checks a table. It also returns the parameters that no tensor holds.
func mappings[T float32 | float64](s *paramSet, table []Tensor) (list []*mapping[T], left []*Param, err error) {
	names, holders, held := map[string]bool{}, map[string]string{}, map[string]int{}
	needed := map[string]int{}
	for i, t := range table {
		if len(t.Names) == 0 || len(t.Params) == 0 {
			return nil, nil, fmt.Errorf("a Tensor must have Names and Params, got %v and %v at index %d", t.Names, t.Params, i)
		}
		for _, name := range t.Names {
			if names[name] {
				return nil, nil, fmt.Errorf("two Tensors have the name %q: give them different names", name)
			}
			names[name] = true
		}
		m := &mapping[T]{Tensor: t}
		for _, name := range t.Params {
			q := s.byName[name]
			if q == nil {
				return nil, nil, fmt.Errorf("tensor %q: there is no parameter %q: see Params.Summary for the names", t.Names[0], name)
			}
			place := fmt.Sprint(name, " ", t.Single)
			if other, ok := holders[place]; ok || held[name] > 0 && t.Single == 0 || held[name] >= max(t.Stacked, 1) {
				return nil, nil, fmt.Errorf("the tensors %q and %q both hold the parameter %q", cmp.Or(other, holders[name]), t.Names[0], name)
			}
			holders[place], holders[name] = t.Names[0], t.Names[0]
			if held[name]++; t.Single == 0 {
				held[name] = max(t.Stacked, 1)
			}
			values, err := valuesOf[T](q)
			if err != nil {
				return nil, nil, err
			}
			m.parts = append(m.parts, part[T]{Param: q, values: values, shape: q.Value.Shape().Clone()})
		}
		if err := m.check(); err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", t.Names[0], err)
		}
		list = append(list, m)
		for _, q := range m.parts {
			needed[q.Name] = max(m.Stacked, 1)
		}
	}
	for _, q := range s.list {
		if held[q.Name] < max(needed[q.Name], 1) {
			left = append(left, q)
		}
	}
	return list, left, nil
}

// check checks a Tensor and sets shape, rows, cols, segments, and the default of Groups.
func (m *mapping[T]) check() error {
	const maxSkip = 1 << 30 // so that the number of rows fits in an int of 32 bits
	m.Groups = max(m.Groups, 1)
	if err := m.stack(); err != nil {
		return err
	}
	m.shape = m.parts[0].shape.Clone()
	switch {
	case m.Transposed && len(m.shape) != 2:
		return fmt.Errorf("parameters with Transposed must be matrices, got %q of shape %v", m.Params[0], m.shape)
	case m.SkipRows != 0 && m.Stacked != 0:
		return fmt.Errorf("it can't have both SkipRows and Stacked, got %d and %d", m.SkipRows, m.Stacked)
	case m.SkipRows < 0 || m.SkipRows > maxSkip:
		return fmt.Errorf("its SkipRows must be from 0 to %d, got %d", maxSkip, m.SkipRows)
	case !finite(m.Plus):
		return fmt.Errorf("its Plus must be finite, got %v", m.Plus)
	}
	m.shape[0] = 0
	for _, q := range m.parts {
		if len(q.shape) != len(m.shape) || q.shape[0]%m.Groups != 0 {
			return fmt.Errorf("parameter %q must have %d axes, and the first must be a multiple of Groups = %d, got shape %v", q.Name, len(m.shape), m.Groups, q.shape)
		}
		if !slices.Equal(q.shape[1:], m.shape[1:]) {
			return fmt.Errorf("joined parameters must have the same size in all axes but the first, got %q of shape %v and %q of shape %v",
				m.Params[0], m.parts[0].shape, q.Name, q.shape)
		}
		m.shape[0] += q.shape[0]
	}
	end := 0
	for g := range m.Groups {
		for i, q := range m.parts {
			n := q.shape[0] / m.Groups
			m.segments = append(m.segments, segment{i, end, end + n, g*n - end})
			end += n
		}
	}
	if m.Transposed {
		slices.Reverse(m.shape)
	}
	m.rows, m.cols = m.shape[0], 1
	for _, d := range m.shape[1:] {
		m.cols *= d
	}
	if m.shape[0] += m.SkipRows; m.Stacked != 0 && m.Single == 0 {
		m.shape = append(tensor.Shape{m.count}, m.shape...)
	}
	return nil
}

// stack sets count, and the shapes and values of the parts, for Stacked and Single.
func (m *mapping[T]) stack() error {
	m.count = 1
	switch {
	case m.Stacked < 0 || m.Single < 0 || m.Single > m.Stacked:
		return fmt.Errorf("its Stacked must be at least 0, and its Single at most Stacked, got %d and %d", m.Stacked, m.Single)
	case m.Stacked > 0 && m.Single == 0:
		m.count = m.Stacked
	}
	for i := range m.parts {
		q := &m.parts[i]
		if m.Stacked > 0 {
			if q.shape[0]%m.Stacked != 0 {
				return fmt.Errorf("the first axis of parameter %q must be a multiple of Stacked = %d, got shape %v", q.Name, m.Stacked, q.shape)
			}
			if q.shape[0] /= m.Stacked; q.shape[0] == 1 && len(q.shape) > 1 {
				q.shape = q.shape[1:]
			}
			if size := len(q.values) / m.Stacked; m.Single > 0 {
				q.values = q.values[(m.Single-1)*size:][:size]
			}
		}
		q.cols = len(q.values) / m.count / q.shape[0]
	}
	return nil
}

// A block is a part of a file's tensor whose values follow each other: whole rows, or a piece of one row.
type block struct{ item, top, bottom, left, right int }

func (b block) len() int { return (b.bottom - b.top) * (b.right - b.left) }

// blockSize is the largest number of values in a block.
const blockSize = 1 << 16

// blocks yields the tensor's blocks in the order of the file.
func (m *mapping[T]) blocks() iter.Seq[block] {
	return func(yield func(block) bool) {
		high, wide := max(blockSize/m.cols, 1), min(m.cols, blockSize)
		for item := range m.count {
			for top := 0; top < m.rows; top += high {
				for left := 0; left < m.cols; left += wide {
					if !yield(block{item, top, min(top+high, m.rows), left, min(left+wide, m.cols)}) {
						return
					}
				}
			}
		}
	}
}

// move copies the values of a block to the parameters or, with back, from them.
func (m *mapping[T]) move(b block, values []T, back bool) {
	high, wide := b.bottom-b.top, b.right-b.left
	for _, s := range m.segments {
		q := m.parts[s.part]
		ours := q.values[b.item*(len(q.values)/m.count):]
		if !m.Transposed {
			for row := max(b.top, s.begin); row < min(b.bottom, s.end); row++ {
				if x, y := values[(row-b.top)*wide:][:wide], ours[(row+s.shift)*q.cols+b.left:]; back {
					copy(x, y)
				} else {
					copy(y, x)
				}
			}
			continue
		}
		for col := max(b.left, s.begin); col < min(b.right, s.end); col++ { // the file's columns are the parameter's rows
			y := ours[(col+s.shift)*q.cols+b.top:][:high]
			for row := range y {
				if x := &values[row*wide+col-b.left]; back {
					*x = y[row]
				} else {
					y[row] = *x
				}
			}
		}
	}
}

// buffers holds the values of one block, as they are in the file and converted.
type buffers[T float32 | float64] struct {
	raw    [8 * blockSize]byte
	values [blockSize]T
}

// read reads the values of the tensor from r. It returns an error if one of them isn't finite as T. If set is true, it
// sets the parameters to the values.
func (m *mapping[T]) read(e safetensors.Entry, r io.Reader, buf *buffers[T], set bool) error {
	if _, err := io.CopyN(io.Discard, r, int64(m.SkipRows)*int64(m.cols*e.Width())); err != nil {
		return err
	}
	done := 0
	for b := range m.blocks() {
		raw, values := buf.raw[:b.len()*e.Width()], buf.values[:b.len()]
		if _, err := io.ReadFull(r, raw); err != nil {
			return err
		}
		safetensors.Decode(values, e.Dtype, raw)
		if m.Plus != 0 {
			for i, v := range values {
				values[i] = T(float64(v) + m.Plus)
			}
		}
		if i := firstNotFinite(values); i >= 0 {
			var v [1]float64
			safetensors.Decode(v[:], e.Dtype, raw[i*e.Width():])
			return notFinite[T](v[0], m.SkipRows*m.cols+done+i, (m.SkipRows+m.count*m.rows)*m.cols)
		}
		if set {
			m.move(b, values, false)
		}
		done += len(values)
	}
	return nil
}

// contents yields the values of the tensor in the order of the file, as safetensors.Write needs them.
func (m *mapping[T]) contents(yield func(values []T) bool) {
	skip := m.SkipRows * m.cols
	if skip == 0 && len(m.parts) == 1 && !m.Transposed && m.Plus == 0 { // needs no copy
		yield(m.parts[0].values)
		return
	}
	buf := make([]T, min(max(skip, m.rows*m.cols), blockSize))
	for ; skip > 0; skip -= len(buf) {
		if !yield(buf[:min(skip, len(buf))]) {
			return
		}
	}
	for b := range m.blocks() {
		values := buf[:b.len()]
		m.move(b, values, true)
		if m.Plus != 0 {
			for i, v := range values {
				values[i] = T(float64(v) - m.Plus)
			}
		}
		if !yield(values) {
			return
		}
	}
}

func finite[T float32 | float64](v T) bool { return v-v == 0 }

// firstNotFinite returns the index of the first value that is NaN or infinite, or −1.
func firstNotFinite[T float32 | float64](values []T) int {
	for i, v := range values {
		if v-v != 0 {
			return i
		}
	}
	return -1
}

// notFinite returns the error for the value of one of n elements. The value isn't finite as T.
func notFinite[T float32 | float64](v float64, i, n int) error {
	if finite(v) {
		return fmt.Errorf("element %d of %d is %v, which is too large for %T", i, n, v, T(0))
	}
	return fmt.Errorf("element %d of %d is %v: no weight may be NaN or infinite", i, n, v)
}
