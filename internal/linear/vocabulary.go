package linear

import (
	"cmp"
	"math"
	"slices"
)

// A Vocabulary makes vectors of texts. Its features are n-grams, in order of their hashes. After them come extra
// features: for pairs how similar the texts are, then the numbers of the text's vector, and last the number 1, whose
// weight is the intercept. It doesn't change, so any number of goroutines may use it at once.
type Vocabulary struct {
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

// NewVocabulary returns the vocabulary with these n-grams: their hashes in ascending order, and their inverse document
// frequencies. If pairs is true, a text is two texts with a tab between them. The vector of a text has width numbers.
func NewVocabulary(grams Grams, pairs bool, width int, hashes []uint64, idf []float32) *Vocabulary {
	v := &Vocabulary{grams: grams, pairs: pairs, width: width, hashes: hashes, idf: idf}
	v.makeTable()
	return v
}

// Features returns the number of features.
func (v *Vocabulary) Features() int { return v.sparse() + v.width }

// sparse returns the number of features without those of the text's vector.
func (v *Vocabulary) sparse() int { return len(v.hashes) + Extras(v.pairs) }

const overlaps = 2 * kinds // extra features of pairs

// Extras returns the number of features that a text or a pair has besides n-grams and the numbers of its vector.
func Extras(pairs bool) int {
	if pairs {
		return overlaps + 1
	}
	return 1
}

// makeTable makes the table for find.
func (v *Vocabulary) makeTable() {
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
func (v *Vocabulary) find(h uint64) (feature uint32, ok bool) {
	low, high := v.firsts[h>>v.shift], v.firsts[h>>v.shift+1]
	if low == high {
		return 0, false
	}
	i, ok := slices.BinarySearch(v.hashes[low:high], h)
	return low + uint32(i), ok
}

// Vector returns the features of a text whose values aren't 0, in ascending order, and their values, without those of
// the text's vector. They are valid until s is used again.
func (v *Vocabulary) Vector(s *Scratch, text string) ([]uint32, []float32) {
	s.index, s.value = s.index[:0], s.value[:0]
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
	}
	extra := len(v.hashes)
	add := func(x float32) {
		s.index, s.value = append(s.index, uint32(extra)), append(s.value, x)
		extra++
	}
	if v.pairs {
		for kind := range uint64(kinds) {
			cosine := v.cosine(s.grams, kind)
			add(cosine)
			add(float32(cosine * cosine))
		}
	}
	extra += v.width
	add(1)
	return s.index, s.value
}

// cosine returns the cosine of the angle between the texts of a pair, by their n-grams of a kind, times the square of
// the kind's norm. New queries have n-grams that no first text had in training, but second texts had. So each n-gram
// counts with the idf that it has on either side, or with the greatest.
func (v *Vocabulary) cosine(grams []gram, kind uint64) float32 {
	const move = secondGroup << groupShift
	part := func(group uint64) []gram {
		bound := func(group uint64) int {
			i, _ := slices.BinarySearchFunc(grams, group<<groupShift, func(g gram, h uint64) int { return cmp.Compare(g.hash, h) })
			return i
		}
		return grams[bound(group):bound(group+1)]
	}
	weigh := func(g gram, other uint64) float64 {
		idf := v.rarest
		if feature, ok := v.find(g.hash); ok {
			idf = float64(v.idf[feature])
		} else if feature, ok := v.find(other); ok {
			idf = float64(v.idf[feature])
		}
		return (1 + math.Log(float64(g.count))) * idf
	}
	a, b := part(kind), part(secondGroup+kind)
	var first, second, both float64
	for len(a)+len(b) > 0 {
		var x, y float64
		inFirst := len(a) > 0 && (len(b) == 0 || a[0].hash+move <= b[0].hash)
		if len(b) > 0 && (!inFirst || a[0].hash+move == b[0].hash) {
			y = weigh(b[0], b[0].hash-move)
			b = b[1:]
		}
		if inFirst {
			x = weigh(a[0], a[0].hash+move)
			a = a[1:]
		}
		first, second, both = first+float64(x*x), second+float64(y*y), both+float64(x*y)
	}
	if both == 0 {
		return 0
	}
	return float32(both * normOf[kind] * normOf[kind] / math.Sqrt(first*second))
}
