package kernel

import (
	"runtime"
	"sync/atomic"
	"time"
)

// amxPanels holds packed panels of op(B) for some columns and terms: all runs of one panel, then the runs of the next.
// The tasks of a product share them. Each panel is packed by the first task that needs it.
type amxPanels struct {
	depth, pieces int
	data          []uint16
	ranges        []amxRange
	states        []atomic.Uint32 // of each run of a panel: 2·round + 1 while it is packed, and then 2·round + 2
}

// reserve makes room for columns with depth terms. No panel is packed then.
func (b *amxPanels) reserve(cols, depth, pieces int) {
	b.depth, b.pieces = depth, pieces
	b.data = aligned(b.data, roundUp(cols, amxSide)*roundUp(depth, bfloat16Terms)*pieces)
	n := parts(cols, amxSide) * parts(depth, amxRun)
	b.ranges, b.states = grown(b.ranges, n), amxCounters(b.states, n)
}

// claim returns the panel for columns from col on and a run from term on, and its range. Rounds count from 0: memory
// that is used again, for another part of B, begins a new round. If no task has packed the panel in this round, the
// caller must: then packed isn't nil, and the caller adds 1 to it when done. If another task packs it, claim waits.
func (b *amxPanels) claim(col, term, round int) (panel []uint16, r *amxRange, packed *atomic.Uint32) {
	first := col/amxSide*roundUp(b.depth, bfloat16Terms) + term
	x := col/amxSide*parts(b.depth, amxRun) + term/amxRun
	panel, r = b.data[first*amxSide*b.pieces:], &b.ranges[x]
	if v, busy := b.states[x].Load(), uint32(2*round+1); v < busy && b.states[x].CompareAndSwap(v, busy) {
		return panel, r, &b.states[x]
	}
	amxAwait(&b.states[x], 2*round+2)
	return panel, r, nil
}

// amxCounters returns n counters at 0.
func amxCounters(x []atomic.Uint32, n int) []atomic.Uint32 {
	x = grown(x, n)
	for i := range x {
		x[i].Store(0)
	}
	return x
}

// amxAwait returns when n is at least least.
func amxAwait(n *atomic.Uint32, least int) {
	for try := 0; int(n.Load()) < least; try++ {
		switch {
		case try < 100: // some microseconds
			parallelPause()
		case try < 1000:
			runtime.Gosched()
		default:
			time.Sleep(20 * time.Microsecond)
		}
	}
}
