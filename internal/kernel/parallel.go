package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// parallelTask is work that consists of numbered parts.
type parallelTask interface{ run(i int) }

type parallelFunc func(i int)

func (f parallelFunc) run(i int) { f(i) }

// workers returns the number of goroutines for the argument cores, where 0 means GOMAXPROCS.
func workers(cores int) int {
	if cores < 1 {
		return runtime.GOMAXPROCS(0)
	}
	return cores
}

// parallelRun runs the n parts of t, on at most the given number of cores at once, and returns when all are done. The
// caller chooses the parts, so results don't depend on the number of cores, as long as no part reads another part's
// output. Use it for some tens of microseconds of work or more.
//
// A part may call parallelRun, and any number of goroutines may call it at once. A panic in a part reaches the caller
// when the other parts are done.
//
// Sleeping helpers are woken only if wake is true, because waking takes microseconds, longer than a small task. After
// the first calls, parallelRun allocates no memory.
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

// parallelJob is one call of parallelRun. The caller and its helpers each run the next part until none is left. The
// caller waits only for parts that a helper has started. So it can finish without helpers, and calls may be nested. A
// late helper finds no parts. The last goroutine to release the job returns it to the pool.
type parallelJob struct {
	task     parallelTask
	n        int64
	next     atomic.Int64
	done     atomic.Int64
	refs     atomic.Int64
	finished chan struct{} // receives a token when a helper has finished the last part
	panicked atomic.Pointer[parallelPanic]
}

type parallelPanic struct{ value any }

var parallelJobs = sync.Pool{New: func() any { return &parallelJob{finished: make(chan struct{}, 1)} }}

// work runs parts until none is left. It reports whether it finished the last part.
func (j *parallelJob) work() (last bool) {
	for j.next.Load() < j.n {
		last = j.take() || last
	}
	return last
}

// take runs parts until none is left or one panics.
func (j *parallelJob) take() (last bool) {
	taken := false
	defer func() {
		if taken { // the part has panicked
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

// wait returns when the helpers have finished their parts.
func (j *parallelJob) wait() {
	for range 1000 { // some tens of microseconds: most parts take no longer
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

// parallelHelper is a goroutine that helps callers. It is free while its job is nil. After some time without a job it
// goes to sleep.
type parallelHelper struct {
	job    atomic.Pointer[parallelJob]
	asleep atomic.Bool
	wake   chan struct{}
}

// parallelAwake is how long a helper waits for a job before it sleeps. It is longer than a caller's pause between two
// products, and about as long as waking takes.
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

// parallelAdd ensures that there is at least the wanted number of helpers.
func parallelAdd(wanted int) *[]*parallelHelper {
	parallelMutex.Lock()
	defer parallelMutex.Unlock()
	var helpers []*parallelHelper
	if current := parallelHelpers.Load(); current != nil {
		helpers = append(helpers, *current...)
	}
	for len(helpers) < wanted {
		h := &parallelHelper{wake: make(chan struct{}, 1)}
		helpers = append(helpers, h)
		go h.help()
	}
	parallelHelpers.Store(&helpers)
	return &helpers
}

// help does jobs forever.
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

// await returns the next job. It sets asleep and then reads job, while recruit sets job and then reads asleep, so at
// least one of them sees what the other has set. If both do, an unneeded token wakes the helper once.
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
