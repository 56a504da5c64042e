package linear

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// A vocabulary makes vectors of texts. Its features are the n-grams of the training rows, except n-grams of
// characters that occur in a single row. They are in order of their hashes. After them come extra features: for
// pairs how similar the texts are, then the numbers of the text's vector, and last the number 1, whose weight is the
// intercept.
type vocabulary struct {
	grams  Grams
	pairs  bool
	width  int // of the text's vector
	hashes []uint64
	idf    []float32 // of each hash

	rarest float64 // the greatest idf

	// Hashes spread evenly within a group. So firsts[h >> shift] is close to the place of h in hashes.
	firsts []uint32
	shift  int
}

// features returns the number of features.
func (v *vocabulary) features() int { return v.sparse() + v.width }

// sparse returns the number of features without those of the text's vector.
func (v *vocabulary) sparse() int { return len(v.hashes) + extras(v.pairs) }

const overlaps = 2 * kinds // extra features of pairs

func extras(pairs bool) int {
	if pairs {
		return overlaps + 1
	}
	return 1
}

const chunkRows = 256 // rows that are in memory at once as n-grams

// newVocabulary counts the n-grams of the rows in the given order, until maxEntries or maxWork is reached. It returns
// the vocabulary, the number of rows counted, and the number of entries that their matrix will have. Weights of the
// given number per feature fit into maxWeights.
func newVocabulary(ctx context.Context, rows Rows, order []int, outputs int, o Options) (v *vocabulary, used, entries int, err error) {
	// A shard counts the hashes with the same lowest bits, so shards can count in parallel.
	const shards = 16
	var counts [shards]map[uint64]uint32
	var limits [shards]int
	for i := range counts {
		counts[i] = make(map[uint64]uint32)
		limits[i] = 1 << 18
	}
	var found [chunkRows][]uint64
	counted, limit := 0, int(min(maxEntries, maxWork/int64(outputs)))
	if o.Bare {
		used = len(order)
	}
	for used < len(order) && counted < limit {
		chunk := order[used:min(len(order), used+chunkRows)]
		err := parallelScratch(ctx, o.Cores, len(chunk), func(i int, s *scratch) {
			found[i] = found[i][:0]
			for _, g := range o.Grams.count(s, rows.Text(chunk[i]), o.Pairs) {
				found[i] = append(found[i], g.hash)
			}
		})
		if err != nil {
			return nil, 0, 0, err
		}
		err = parallel(ctx, o.Cores, shards, func(shard int) {
			count := counts[shard]
			for _, hashes := range found[:len(chunk)] {
				for _, h := range hashes {
					if h%shards == uint64(shard) {
						count[h]++
					}
				}
			}
			if len(count) > limits[shard] { // forget what has occurred only once
				for h, n := range count {
					if n == 1 {
						delete(count, h)
					}
				}
				limits[shard] = max(limits[shard], 2*len(count))
			}
		})
		if err != nil {
			return nil, 0, 0, err
		}
		for _, hashes := range found[:len(chunk)] {
			counted += len(hashes)
		}
		used += len(chunk)
	}

	others := extras(o.Pairs) + o.Width
	maxFeatures := maxWeights/outputs - others
	if maxFeatures < 1 {
		return nil, 0, 0, fmt.Errorf("linear: %w: expected at most %d outputs, got %d", ErrTooLarge, maxWeights/(1+others), outputs)
	}
	type feature struct {
		hash  uint64
		count uint32
	}
	var kept []feature
	for _, count := range counts {
		for h, n := range count {
			if n >= 2 || h>>groupShift%kinds != characters {
				kept = append(kept, feature{h, n})
			}
		}
	}
	if len(kept) > maxFeatures { // drop the rarest
		slices.SortFunc(kept, func(a, b feature) int {
			return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.hash, b.hash))
		})
		kept = kept[:maxFeatures]
	}
	slices.SortFunc(kept, func(a, b feature) int { return cmp.Compare(a.hash, b.hash) })
	v = &vocabulary{grams: o.Grams, pairs: o.Pairs, width: o.Width, hashes: make([]uint64, len(kept)), idf: make([]float32, len(kept))}
	for i, f := range kept {
		v.hashes[i] = f.hash
		entries += int(f.count)
		v.idf[i] = float32(math.Log(float64(1+used)/float64(1+f.count)) + 1)
	}
	v.makeTable()
	return v, used, entries + used*extras(o.Pairs), nil
}

// makeTable makes the table for find.
func (v *vocabulary) makeTable() {
	for _, idf := range v.idf {
		v.rarest = max(v.rarest, float64(idf))
	}
	v.shift = 64
	for v.shift > groupShift-1 || 1<<(64-v.shift) < 4*len(v.hashes) {
		v.shift--
	}
	v.firsts = make([]uint32, 1<<(64-v.shift)+1)
	for i, h := range v.hashes {
		v.firsts[h>>v.shift+1] = uint32(i + 1)
	}
	for i := 1; i < len(v.firsts); i++ {
		v.firsts[i] = max(v.firsts[i], v.firsts[i-1])
	}
}

// find returns the feature with the given hash.
func (v *vocabulary) find(h uint64) (feature uint32, ok bool) {
	low, high := v.firsts[h>>v.shift], v.firsts[h>>v.shift+1]
	if low == high {
		return 0, false
	}
	i, ok := slices.BinarySearch(v.hashes[low:high], h)
	return low + uint32(i), ok
}

// vector returns the features of a text whose values aren't 0, in ascending order, and their values, without those of
// the text's vector. They are valid until s is used again.
func (v *vocabulary) vector(s *scratch, text string) ([]uint32, []float32) {
	s.index, s.value = s.index[:0], s.value[:0]
	var ends [groups]int
	grams := v.grams.count(s, text, v.pairs)
	for group := range uint64(groups) {
		start, sum := len(s.value), 0.0
		for len(grams) > 0 && grams[0].hash>>groupShift == group {
			if feature, ok := v.find(grams[0].hash); ok {
				x := (1 + math.Log(float64(grams[0].count))) * float64(v.idf[feature])
				sum += float64(x * x)
				s.index, s.value = append(s.index, feature), append(s.value, float32(x))
			} else if group%kinds != characters {
				// A training row is divided by a norm that counts its unique n-grams too.
				x := (1 + math.Log(float64(grams[0].count))) * v.rarest
				sum += float64(x * x)
			}
			grams = grams[1:]
		}
		for i := start; i < len(s.value); i++ {
			s.value[i] = float32(float64(s.value[i]) * normOf[group%kinds] / math.Sqrt(sum))
		}
		ends[group] = len(s.value)
	}
	extra := len(v.hashes)
	add := func(x float32) {
		s.index, s.value = append(s.index, uint32(extra)), append(s.value, x)
		extra++
	}
	if v.pairs {
		for kind := range kinds {
			cosine := v.cosine(s, ends, kind)
			add(cosine)
			add(float32(cosine * cosine))
		}
	}
	extra += v.width
	add(1)
	return s.index, s.value
}

// cosine returns the cosine of the angle between the texts of a pair.
func (v *vocabulary) cosine(s *scratch, ends [groups]int, kind int) float32 {
	start := 0
	if kind > 0 {
		start = ends[kind-1]
	}
	a, end := start, ends[kind]
	b, last := ends[secondGroup+kind-1], ends[secondGroup+kind]
	sum := float32(0)
	const move = secondGroup << groupShift
	for a < end && b < last {
		switch x, y := v.hashes[s.index[a]]+move, v.hashes[s.index[b]]; {
		case x < y:
			a++
		case x > y:
			b++
		default:
			sum += float32(s.value[a] * s.value[b])
			a, b = a+1, b+1
		}
	}
	return sum
}

// A matrix has a sparse vector per row. Row i has the features index[starts[i]:starts[i+1]], and value has their
// values. It also has the vectors of the texts, (rows, width), whose numbers are the features from first.
type matrix struct {
	starts []int
	index  []uint32
	value  []float32

	dense        []float32
	width, first int
}

func (m *matrix) rows() int { return len(m.starts) - 1 }

func (m *matrix) row(i int) ([]uint32, []float32) {
	start, end := m.starts[i], m.starts[i+1]
	return m.index[start:end], m.value[start:end]
}

func (m *matrix) vector(i int) []float32 { return m.dense[i*m.width:][:m.width] }

// matrix returns the vectors of the rows with the numbers in order. It expects to find the given number of entries.
func (v *vocabulary) matrix(ctx context.Context, rows Rows, order []int, entries, cores int) (*matrix, error) {
	m := &matrix{
		starts: make([]int, 1, len(order)+1), index: make([]uint32, 0, entries), value: make([]float32, 0, entries),
		width: v.width, first: v.sparse() - 1,
	}
	var indexes [chunkRows][]uint32
	var values [chunkRows][]float32
	for start := 0; start < len(order); start += chunkRows {
		chunk := order[start:min(len(order), start+chunkRows)]
		err := parallelScratch(ctx, cores, len(chunk), func(i int, s *scratch) {
			index, value := v.vector(s, rows.Text(chunk[i]))
			indexes[i], values[i] = append(indexes[i][:0], index...), append(values[i][:0], value...)
		})
		if err != nil {
			return nil, err
		}
		for i := range chunk {
			m.index, m.value = append(m.index, indexes[i]...), append(m.value, values[i]...)
			m.starts = append(m.starts, len(m.index))
		}
	}
	return m, nil
}

// parallelScratch is parallel with scratch memory, for quick calls: a goroutine takes several at a time.
func parallelScratch(ctx context.Context, cores, n int, do func(i int, s *scratch)) error {
	const part = 16
	return parallel(ctx, cores, (n+part-1)/part, func(p int) {
		var s scratch
		for i := p * part; i < min(n, (p+1)*part); i++ {
			do(i, &s)
		}
	})
}
