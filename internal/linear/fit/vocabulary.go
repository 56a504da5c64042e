package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/internal/linear"
)

// newVocabulary counts the n-grams of the rows in the given order, until maxEntries or maxWork is reached. It returns
// the vocabulary, the number of rows counted, and the number of entries that their matrix will have. The vocabulary
// lacks n-grams of characters that occur in a single row. Weights of the given number per feature fit into
// linear.MaxWeights.
func newVocabulary(ctx context.Context, rows linear.Rows, order []int, outputs int, o Options) (v *linear.Vocabulary, used, entries int, err error) {
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
		err := linear.ParallelScratch(ctx, len(chunk), func(i int, s *linear.Scratch) {
			found[i] = o.Grams.AppendHashes(found[i][:0], s, rows.Text(chunk[i]), o.Pairs)
		})
		if err != nil {
			return nil, 0, 0, err
		}
		err = linear.Parallel(ctx, shards, func(shard int) {
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

	others := linear.Extras(o.Pairs) + o.Width
	maxFeatures := linear.MaxWeights/outputs - others
	if maxFeatures < 1 {
		return nil, 0, 0, fmt.Errorf("linear: %w: expected at most %d outputs, got %d", ErrTooLarge, linear.MaxWeights/(1+others), outputs)
	}
	type feature struct {
		hash  uint64
		count uint32
	}
	var kept []feature
	for _, count := range counts {
		for h, n := range count {
			if n >= 2 || !linear.OfCharacters(h) {
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
	hashes, idf := make([]uint64, len(kept)), make([]float32, len(kept))
	for i, f := range kept {
		hashes[i] = f.hash
		entries += int(f.count)
		idf[i] = float32(math.Log(float64(1+used)/float64(1+f.count)) + 1)
	}
	return linear.NewVocabulary(o.Grams, o.Pairs, o.Width, hashes, idf), used, entries + used*linear.Extras(o.Pairs), nil
}
