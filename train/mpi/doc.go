// Package mpi makes the processes of an MPI job the Group of a train.Config. It is built with Open MPI:
//
//	apt-get install -y openmpi-bin libopenmpi-dev
//	go build -tags mpi ./cmd/heed
//	mpirun -n 2 ./heed train
//
// Without the tag, or without cgo, it has the same API and no MPI: a program that was started alone is one process as
// ever, and one of several that a launcher has started is told how to build it.
//
// Join refuses processes of different builds, and processors on which the last bits would differ.
package mpi

import (
	"cmp"
	"os"
	"strconv"
)

// rankVariables are what launchers have in a process's environment. SLURM's own aren't among them: plain batch scripts
// have them, too.
var rankVariables = []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}

// Rank returns the number of this process among those that a launcher such as mpirun has started, and 0 and false in a
// program that was started alone. It needs no MPI.
func Rank() (rank int, launched bool) {
	for _, name := range rankVariables {
		if rank, err := strconv.Atoi(os.Getenv(name)); err == nil && rank >= 0 {
			return rank, true
		}
	}
	return 0, false
}

// started returns how many processes a launcher has started, where it says so: srun does for its step.
func started() string {
	return cmp.Or(os.Getenv("OMPI_COMM_WORLD_SIZE"), os.Getenv("SLURM_STEP_NUM_TASKS"))
}
