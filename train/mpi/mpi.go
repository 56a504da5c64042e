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

// group is a train.Group of the processes in an MPI job. One goroutine, locked to its thread, makes all MPI calls. An
// error in MPI ends all processes of the job, so none waits forever; this is MPI's default.
type group struct {
	rank, size int
	comm       *mpi.Comm
	calls      chan func() error
	errs       chan error // results of the calls
}

// Join returns the Group of the processes that an MPI launcher has started, and a function to call at the end of the
// program, which waits for the other processes. Without a launcher, the Group is nil. Call Join once.
func Join() (train.Group, func(), error) {
	if _, launched := Rank(); !launched {
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
	os.Setenv("OMPI_MCA_opal_signal", "") // otherwise Open MPI would handle signals that Go needs
	if err := mpi.InitThreadSafe(); err != nil {
		return err
	}
	if g.comm, err = mpi.NewComm(nil); err != nil {
		return err
	}
	g.rank, g.size = g.comm.Rank(), g.comm.Size()
	if size := started(); size != "" && size != fmt.Sprint(g.size) {
		return fmt.Errorf("the launcher has started %s processes, but MPI counts %d: build this program for the launcher's MPI: "+
			"run go clean -cache, then go build -tags mpi", size, g.size)
	}
	return g.alike()
}

// alike returns an error unless all processes are the same build and use the same CPU instructions. Otherwise their
// results or messages could differ.
func (g *group) alike() error {
	const name = 16 // bytes for the name of the instructions
	mine := append([]byte(kernel.Instructions()), make([]byte, name)...)[:name]
	sum, err := checksum()
	if err != nil {
		return fmt.Errorf("can't compute this program's checksum: %w", err)
	}
	mine = append(mine, sum...)
	gathered := make([]byte, g.size*len(mine))
	if err := g.comm.AllGatherU8(gathered, mine); err != nil {
		return err
	}
	instructions := func(rank int) string { return string(bytes.TrimRight(gathered[rank*len(mine):][:name], "\x00")) }
	for rank := range g.size {
		switch one := gathered[rank*len(mine):][:len(mine)]; {
		case !bytes.Equal(one[name:], gathered[name:len(mine)]):
			return fmt.Errorf("process %d runs a different build from process 0: copy the same program to all machines", rank)
		case !bytes.Equal(one, gathered[:len(mine)]):
			return fmt.Errorf("process %d computes with %s and process 0 with %s, which give different last bits: "+
				"set the environment variable GODEBUG=cpu.amxtile=off, cpu.avx512f=off or cpu.avx2=off on all machines", rank, instructions(rank), instructions(0))
		}
	}
	return nil
}

// checksum returns the SHA-256 of the program's file.
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

// do runs a function on MPI's thread.
func (g *group) do(call func() error) error {
	g.calls <- call
	return <-g.errs
}

func (g *group) Rank() int { return g.rank }
func (g *group) Size() int { return g.size }

func (g *group) Gather(mine, gathered []byte) error {
	if len(mine) == 0 {
		return nil
	}
	return g.do(func() error { return g.comm.AllGatherU8(gathered, mine) })
}

func (g *group) Swap(peer int, send, receive [][]byte) error {
	return g.do(func() error { return swap(peer, send, receive) })
}

// maxMessage is the largest size of a message in bytes; MPI counts them in 32 bits.
const maxMessage = 1 << 30

// pieces cuts slices into pieces whose length is limited by maxMessage, and calls do for each piece. It skips empty
// slices.
func pieces(slices [][]byte, do func([]byte) error) error {
	for _, s := range slices {
		for len(s) > 0 {
			n := min(len(s), maxMessage)
			if err := do(s[:n]); err != nil {
				return err
			}
			s = s[n:]
		}
	}
	return nil
}
