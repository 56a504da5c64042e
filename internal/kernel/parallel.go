package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// parallelTask is work in numbered parts.
type parallelTask interface{ run(i int) }

type parallelFunc func(i int)

func (f parallelFunc) run(i int) { f(i) }

// workers returns how many goroutines a number of cores stands for: GOMAXPROCS if it is 0.
func workers(cores int) int {
	if cores < 1 {
		return runtime.GOMAXPROCS(0)
	}
	return cores
}

// parallelRun runs the n parts of t, on at most the given number of cores at once, and returns when all are done. The
// division into parts is the caller's, so that results don't depend on the number of cores, as long as no part reads
// what another one writes. It pays where there are some tens of microseconds of work or more.
//
// A part may call parallelRun itself, and any number of goroutines may call it at once. A panic in a part is passed on
// to the caller once the other parts are done.
//
// Helpers that have gone to sleep are woken only if wake is set: it takes microseconds, longer than a small task.
// Nothing is allocated in the steady state.
func parallelRun(cores, n int, t parallelTask, wake bool) {
	procs := min(n, workers(cores))
	if procs <= 1 {
		for i := range n {
			t.run(i)
		}
		return
	}
	j := parallelJobs.Get().(*parallelJob)
	j.task, j.n = t, int64(n)
	j.next.Store(0)
	j.done.Store(0)
	j.refs.Store(1)
	j.recruit(procs-1, wake)
	if !j.work() {
		j.wait()
	}
	p := j.panicked.Swap(nil)
	j.release()
	if p != nil {
		panic(p.value)
	}
}

// parallelJob is one call of parallelRun. The caller and its helpers each take the next part until none is left. The
// caller waits for the parts that were taken, never for a helper that took none, so that it needs no helper to finish
// and calls may be nested. A helper that comes late finds nothing to do; the last one to let go returns the job to the
// pool.
type parallelJob struct {
	task     parallelTask
	n        int64
	next     atomic.Int64
	done     atomic.Int64
	refs     atomic.Int64
	finished chan struct{} // receives a token when a helper finished the last part
	panicked atomic.Pointer[parallelPanic]
}

type parallelPanic struct{ value any }

var parallelJobs = sync.Pool{New: func() any { return &parallelJob{finished: make(chan struct{}, 1)} }}

// work takes parts until none is left. It reports whether it did the part that was finished last.
func (j *parallelJob) work() (last bool) {
	for j.next.Load() < j.n {
		last = j.take() || last
	}
	return last
}

// take takes parts up to the first panic.
func (j *parallelJob) take() (last bool) {
	taken := false
	defer func() {
		if taken { // and not done
			j.panicked.CompareAndSwap(nil, &parallelPanic{recover()})
			last = j.done.Add(1) == j.n
		}
	}()
	for {
		i := j.next.Add(1) - 1
		if i >= j.n {
			return last
		}
		taken = true
		j.task.run(int(i))
		taken = false
		last = j.done.Add(1) == j.n
	}
}

// wait returns when the helpers have done their parts.
func (j *parallelJob) wait() {
	for range 1000 { // some tens of microseconds: a part takes no longer, mostly
		if len(j.finished) > 0 {
			break
		}
		parallelPause()
	}
	<-j.finished
}

func (j *parallelJob) release() {
	if j.refs.Add(-1) == 0 {
		j.task = nil
		parallelJobs.Put(j)
	}
}

// parallelHelper is a goroutine that helps callers. It's free while its job is nil. When it has had none for a while it
// goes to sleep.
type parallelHelper struct {
	job    atomic.Pointer[parallelJob]
	asleep atomic.Bool
	wake   chan struct{}
}

// parallelAwake is the time for which a helper looks for a job before it sleeps: longer than a caller needs between one
// product and the next, and about as long as waking takes.
const parallelAwake = 100 * time.Microsecond

var (
	parallelHelpers atomic.Pointer[[]*parallelHelper]
	parallelMutex   sync.Mutex // held to add helpers
)

// recruit offers the job to free helpers.
func (j *parallelJob) recruit(wanted int, wake bool) {
	helpers := parallelHelpers.Load()
	if helpers == nil || len(*helpers) < wanted {
		helpers = parallelAdd(wanted)
	}
	for _, h := range *helpers {
		if wanted == 0 {
			return
		}
		if h.job.Load() != nil || !wake && h.asleep.Load() {
			continue
		}
		j.refs.Add(1)
		if !h.job.CompareAndSwap(nil, j) {
			j.refs.Add(-1)
			continue
		}
		wanted--
		if h.asleep.Load() {
			select {
			case h.wake <- struct{}{}:
			default: // it has been woken already
			}
		}
	}
}

// parallelAdd makes sure that there are at least wanted helpers.
func parallelAdd(wanted int) *[]*parallelHelper {
	parallelMutex.Lock()
	defer parallelMutex.Unlock()
	var all []*parallelHelper
	if helpers := parallelHelpers.Load(); helpers != nil {
		all = append(all, *helpers...)
	}
	for len(all) < wanted {
		h := &parallelHelper{wake: make(chan struct{}, 1)}
		all = append(all, h)
		go h.help()
	}
	parallelHelpers.Store(&all)
	return &all
}

// help does jobs for ever.
func (h *parallelHelper) help() {
	for {
		j := h.await()
		if j.work() {
			j.finished <- struct{}{}
		}
		h.job.Store(nil)
		j.release()
	}
}

// await returns the next job. What it announces before it sleeps and what recruit does are in opposite orders, so one
// of the two sees the other; where both do, one token too many wakes the helper later for nothing.
func (h *parallelHelper) await() *parallelJob {
	for {
		for start := time.Now(); time.Since(start) < parallelAwake; runtime.Gosched() {
			for range 64 {
				if j := h.job.Load(); j != nil {
					return j
				}
				parallelPause()
			}
		}
		h.asleep.Store(true)
		if h.job.Load() == nil {
			<-h.wake
		}
		h.asleep.Store(false)
	}
}
