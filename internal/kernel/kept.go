package kernel

import (
	"sync"

	"github.com/heed-go/heed/internal/memory"
)

// A Kept is what products x·Wᵀ keep of a matrix W whose numbers don't change: the panels that a matrix unit reads, so
// that W is packed only once. They take 6 bytes per number, or 2 for products of bfloat16. Products with multiply-adds
// keep nothing, because packing takes only a few percent of their time. The zero Kept keeps nothing. Several goroutines
// may use a Kept at once.
type Kept struct {
	mu     sync.Mutex
	keep   bool
	w      *float32      // the first number of W
	some   [64]float32   // numbers of W: nearly every step of a solver changes one of them
	panels [2]*amxPanels // for one piece and for three
}

// Keep says whether products keep panels from now on, and forgets the panels of earlier products.
func (k *Kept) Keep(keep bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep, k.w, k.panels = keep, nil, [2]*amxPanels{}
}

// Forget is Keep without a change. Call it when numbers of W have changed.
func (k *Kept) Forget() { k.Keep(k.keep) }

// of returns the panels of a product's B for a matrix unit. It returns nil if the product keeps none, or if they would
// take too much memory.
func (k *Kept) of(unit *amxUnit, g *gemmProduct[float32]) *amxPanels {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.keep {
		return nil
	}
	some := k.some
	for i := range some {
		some[i] = g.b[i*((g.n-1)*g.ldb+g.k-1)/(len(some)-1)]
	}
	if k.w != &g.b[0] || k.some != some {
		k.w, k.some, k.panels = &g.b[0], some, [2]*amxPanels{}
	}
	p := &k.panels[unit.pieces/2]
	if *p == nil && memory.Spare(2*roundUp(g.n, amxSide)*roundUp(g.k, bfloat16Terms)*unit.pieces) {
		*p = &amxPanels{}
		(*p).reserve(g.n, g.k, unit.pieces)
	}
	return *p
}
