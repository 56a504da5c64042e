//go:build mpi && cgo

package mpi

import (
	"fmt"
	"os"
	"runtime"

	"cogentcore.org/lab/base/mpi"

	"github.com/heed-go/heed/train"
)

// group is the processes of an MPI job. MPI's calls are made by one goroutine on a thread of its own. Their errors end
// the job: so MPI has it unless told otherwise, and nobody waits.
type group struct {
	rank, size int
	comm       *mpi.Comm
	calls      chan func() error
	errs       chan error // what each call returns
}

// Join returns the Group of the processes that an MPI launcher has started with this one, and what to call at the end
// of the program: it waits for the others. In a program that was started alone, the Group is nil. Call it once.
func Join() (train.Group, func(), error) {
	if _, is := launched(); !is {
		return nil, func() {}, nil
	}
	g := &group{calls: make(chan func() error), errs: make(chan error)}
	go func() {
		runtime.LockOSThread()
		for call := range g.calls {
			g.errs <- call()
		}
	}()
	if err := g.do(g.begin); err != nil {
		return nil, nil, fmt.Errorf("mpi: %w", err)
	}
	return g, func() { g.do(func() error { mpi.Finalize(); return nil }) }, nil
}

func (g *group) begin() (err error) {
	os.Setenv("OMPI_MCA_opal_signal", "") // or Open MPI takes signals that are Go's
	if err := mpi.InitThreadSafe(); err != nil {
		return err
	}
	if g.comm, err = mpi.NewComm(nil); err != nil {
		return err
	}
	g.rank, g.size = g.comm.Rank(), g.comm.Size()
	if size := os.Getenv("OMPI_COMM_WORLD_SIZE"); size != "" && size != fmt.Sprint(g.size) {
		return fmt.Errorf("the launcher has started %s processes, and MPI counts %d: this program was built for another MPI than the launcher's; "+
			"go clean -cache, then go build -tags mpi", size, g.size)
	}
	return nil
}

// do makes a call on MPI's thread.
func (g *group) do(call func() error) error {
	g.calls <- call
	return <-g.errs
}

func (g *group) Rank() int { return g.rank }
func (g *group) Size() int { return g.size }

func (g *group) Gather(mine, all []byte) error {
	if len(mine) == 0 {
		return nil
	}
	return g.do(func() error { return g.comm.AllGatherU8(all, mine) })
}

func (g *group) Swap(peer int, send, receive [][]byte) error {
	return g.do(func() error {
		give := func() error { return pieces(send, func(b []byte) error { return g.comm.SendU8(peer, 0, b) }) }
		take := func() error { return pieces(receive, func(b []byte) error { return g.comm.RecvU8(peer, 0, b) }) }
		first, then := give, take
		if g.rank > peer { // one has to listen
			first, then = take, give
		}
		if err := first(); err != nil {
			return err
		}
		return then()
	})
}

// most is how many bytes a message may have: MPI counts them in 32 bits.
const most = 1 << 30

// pieces calls do for slices, cut where they are too long for a message. Empty ones have none.
func pieces(slices [][]byte, do func([]byte) error) error {
	for _, s := range slices {
		for len(s) > 0 {
			n := min(len(s), most)
			if err := do(s[:n]); err != nil {
				return err
			}
			s = s[n:]
		}
	}
	return nil
}
