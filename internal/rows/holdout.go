package rows

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/setting"
)

// holdOut sets the elements of held for the validation rows.
func (s *Set) holdOut(held []bool) error {
	sources := s.Description.Sources
	if sources < 2 {
		return setting.Errorf("data file %q has only %d source, and none is left for validation: set %s to a file, or %s to 0", s.settings.File, sources, setting.Path("data.validation_file"), setting.Path("data.validation"))
	}
	var strata [][][]int32
	if s.settings.Stratified {
		strata = s.strata(len(held))
	}
	// Double the share until at least one row is held out.
	for share, n := min(0.1, float64(s.settings.Validation)/float64(sources)), 0; n == 0; share *= 2 {
		if strata != nil {
			n, s.Description.Held = stratify(held, strata, share)
		} else {
			n, s.Description.Held = s.hashOut(held, share)
		}
		if n == len(held) {
			return setting.Errorf("data file %q has %d sources, and seed %d holds out all of them: set %s to a file, or choose another %s", s.settings.File, sources, s.seed, setting.Path("data.validation_file"), setting.Path("seed"))
		}
	}
	return nil
}

// hashOut holds out the sources that the hash chooses. It returns the numbers of their rows and of these sources.
func (s *Set) hashOut(held []bool, share float64) (rows, sources int) {
	together := map[string]bool{}
	for i := range held {
		source := s.Train.table.Field(i, 0)
		if held[i] = data.Place(s.seed, source) < share; held[i] {
			rows++
			together[source] = true
		}
	}
	return rows, len(together)
}

// stratify holds out a share of the sources of each stratum, rounded so that the whole number of sources is right too.
// At least one source of each stratum isn't held out. It returns the numbers of held-out rows and sources.
func stratify(held []bool, strata [][][]int32, share float64) (rows, sources int) {
	clear(held)
	due := 0.5 // number of sources to hold out; one half rounds it
	for _, stratum := range strata {
		due += share * float64(len(stratum))
		n := min(int(due), len(stratum)-1)
		due = min(due-float64(n), 1) // a stratum with too few sources doesn't burden the others
		for _, numbers := range stratum[:n] {
			for _, i := range numbers {
				held[i] = true
			}
			rows += len(numbers)
		}
		sources += n
	}
	return rows, sources
}

// strata divides the first n rows into one stratum for each label, the rarest label first. A stratum has the rows of
// each of its sources, in the order of the sources' hashes. A source with several labels belongs to the rarest. The
// result depends on the order of the rows only within a source. It is nil if no label has two sources.
func (s *Set) strata(n int) (strata [][][]int32) {
	source := func(i int32) string { return s.Train.table.Field(int(i), 0) }
	labels := func(i int32) []string { return s.format.labels(s.Train.table.Field(int(i), 1)) }
	counts, places, order := map[string]int{}, make([]float64, n), make([]int32, n)
	for i := range int32(n) {
		for _, label := range labels(i) {
			counts[label]++
		}
		places[i], order[i] = data.Place(s.seed, source(i)), i
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(places[a], places[b]), strings.Compare(source(a), source(b)))
	})
	rarer := func(a, b string) int { return cmp.Or(cmp.Compare(counts[a], counts[b]), strings.Compare(a, b)) }
	sources := map[string][][]int32{} // by label
	enough := false
	for len(order) > 0 {
		end := 1
		for end < len(order) && source(order[end]) == source(order[0]) {
			end++
		}
		rarest := labels(order[0])[0]
		for _, i := range order[:end] {
			for _, other := range labels(i) {
				if rarer(other, rarest) < 0 {
					rarest = other
				}
			}
		}
		sources[rarest] = append(sources[rarest], order[:end])
		enough = enough || len(sources[rarest]) > 1
		order = order[end:]
	}
	if !enough {
		return nil
	}
	for _, label := range slices.SortedFunc(maps.Keys(sources), rarer) {
		strata = append(strata, sources[label])
	}
	return strata
}
