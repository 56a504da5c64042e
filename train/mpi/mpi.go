//go:build mpi && cgo

package mpi

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"

	"cogentcore.org/lab/base/mpi"

	"github.com/heed-go/heed/internal/kernel"
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
	if _, is := Rank(); !is {
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
	if size := started(); size != "" && size != fmt.Sprint(g.size) {
		return fmt.Errorf("the launcher has started %s processes, and MPI counts %d: this program was built for another MPI than the launcher's; "+
			"go clean -cache, then go build -tags mpi", size, g.size)
	}
	return g.alike()
}

// alike checks that all processes are the same build and compute with the same instructions: others' results would
// differ, or what they exchange.
func (g *group) alike() error {
	const name = 16 // bytes for that of the instructions
	mine := append([]byte(kernel.Instructions()), make([]byte, name)...)[:name]
	sum, err := checksum()
	if err != nil {
		return fmt.Errorf("the checksum of this program can't be had: %w", err)
	}
	mine = append(mine, sum...)
	all := make([]byte, g.size*len(mine))
	if err := g.comm.AllGatherU8(all, mine); err != nil {
		return err
	}
	instructions := func(rank int) string { return string(bytes.TrimRight(all[rank*len(mine):][:name], "\x00")) }
	for rank := range g.size {
		switch of := all[rank*len(mine):][:len(mine)]; {
		case !bytes.Equal(of[name:], all[name:len(mine)]):
			return fmt.Errorf("process %d is another build than process 0: copy the same file to all machines", rank)
		case !bytes.Equal(of, all[:len(mine)]):
			return fmt.Errorf("process %d computes with %s and process 0 with %s, whose last bits differ: "+
				"give all the environment variable GODEBUG=cpu.avx512f=off, or cpu.avx2=off", rank, instructions(rank), instructions(0))
		}
	}
	return nil
}

// checksum returns that of the file that this process runs.
func checksum() ([]byte, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return h.Sum(nil), err
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
	return g.do(func() error { return swap(peer, send, receive) })
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
