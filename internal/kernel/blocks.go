package kernel

import "math"

// blockSize is the number of queries and of keys in a block of Blocks: a row of a block is the bits of a uint64.
const blockSize = 64

// Blocks says which keys each query sees, from a function of their positions. A query at a position outside Blocks, or
// a key, is masked. Its memory is one number for each block of queries and keys, and bits for those blocks in which
// some queries see some keys.
type Blocks struct {
	queries, keys int
	columns       int                 // number of blocks beside each other
	kinds         []int32             // of each block: blockEmpty, blockFull, or the index of its bits
	bits          [][blockSize]uint64 // bit j of row i: query i of the block sees key j
}

const (
	blockEmpty = -1
	blockFull  = -2
)

// NewBlocks calls sees once for each query and key.
func NewBlocks(queries, keys int, sees func(query, key int) bool) *Blocks {
	m := &Blocks{queries: queries, keys: keys, columns: parts(keys, blockSize)}
	m.kinds = make([]int32, parts(queries, blockSize)*m.columns)
	for i := range m.kinds {
		t0, j0 := i/m.columns*blockSize, i%m.columns*blockSize
		t1, j1 := min(t0+blockSize, queries), min(j0+blockSize, keys)
		var bits [blockSize]uint64
		seen := 0
		for t := t0; t < t1; t++ {
			for j := j0; j < j1; j++ {
				if sees(t, j) {
					bits[t-t0] |= 1 << (j - j0)
					seen++
				}
			}
		}
		switch seen {
		case 0:
			m.kinds[i] = blockEmpty
		case (t1 - t0) * (j1 - j0):
			m.kinds[i] = blockFull
		default:
			m.kinds[i] = int32(len(m.bits))
			m.bits = append(m.bits, bits)
		}
	}
	return m
}

// Size returns the number of positions of queries, and the number of keys.
func (m *Blocks) Size() (queries, keys int) { return m.queries, m.keys }

// any reports whether a block with queries at positions from p0 to p1 and keys from j0 to j1 isn't empty.
func (m *Blocks) any(p0, p1, j0, j1 int) bool {
	p0, p1, j1 = max(p0, 0), min(p1, m.queries), min(j1, m.keys)
	if p0 >= p1 || j0 >= j1 {
		return false
	}
	for row := p0 / blockSize; row <= (p1-1)/blockSize; row++ {
		for _, kind := range m.kinds[row*m.columns+j0/blockSize : row*m.columns+(j1-1)/blockSize+1] {
			if kind != blockEmpty {
				return true
			}
		}
	}
	return false
}

// hidden reports whether Blocks hide the keys j0 to j1 from the queries t0 to t1 of batch element b.
func (m *Mask[F]) hidden(b, t0, t1, j0, j1 int) bool {
	return m.Blocks != nil && !m.Blocks.any(m.position(b, t0), m.position(b, t1), j0, j1)
}

// sees reports whether the query at position p sees key j.
func (m *Blocks) sees(p, j int) bool {
	if p < 0 || p >= m.queries || j >= m.keys {
		return false
	}
	kind := m.kinds[p/blockSize*m.columns+j/blockSize]
	return kind == blockFull || kind >= 0 && m.bits[kind][p%blockSize]>>(j%blockSize)&1 == 1
}

// hideBlocks sets the scores of keys that the query at position p doesn't see to −Inf. The keys begin at j0.
func hideBlocks[F Float](m *Blocks, scores []F, p, j0 int) {
	inf := F(math.Inf(-1))
	for i := 0; i < len(scores); {
		j := j0 + i
		n := min(blockSize-j%blockSize, len(scores)-i) // keys of one block
		kind := int32(blockEmpty)
		if p >= 0 && p < m.queries && j < m.keys {
			kind = m.kinds[p/blockSize*m.columns+j/blockSize]
		}
		if kind != blockFull {
			var row uint64
			if kind >= 0 {
				row = m.bits[kind][p%blockSize] >> (j % blockSize)
			}
			for k := range scores[i:][:n] {
				if row>>k&1 == 0 {
					scores[i+k] = inf
				}
			}
		} else if past := j + n - m.keys; past > 0 {
			for k := n - past; k < n; k++ {
				scores[i+k] = inf
			}
		}
		i += n
	}
}
