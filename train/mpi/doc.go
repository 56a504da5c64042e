// Package mpi lets the processes of an MPI job train together, as the Group of a train.RunOptions. It needs Open MPI:
//
//	apt-get install -y openmpi-bin libopenmpi-dev
//	go build -tags mpi ./cmd/heed
//	mpirun -n 2 ./heed train
//
// Without the tag, or without cgo, the package has the same API but no MPI. A program started without a launcher then
// works as usual; under a launcher with several processes, Join returns an error that says how to build it.
//
// Join returns an error if the processes are different builds, or if their processors would give different last bits.
package mpi

import (
	"cmp"
	"os"
	"strconv"
)

// rankVariables are the environment variables in which launchers set a process's rank. SLURM's own variables are
// missing, because SLURM also sets them in plain batch scripts.
var rankVariables = []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}

// Rank returns the rank of this process and true if a launcher such as mpirun has started it, else 0 and false. It
// needs no MPI.
func Rank() (rank int, launched bool) {
	for _, name := range rankVariables {
		if rank, err := strconv.Atoi(os.Getenv(name)); err == nil && rank >= 0 {
			return rank, true
		}
	}
	return 0, false
}

// started returns the number of processes that the launcher has started, or "" if the launcher doesn't say.
func started() string {
	return cmp.Or(os.Getenv("OMPI_COMM_WORLD_SIZE"), os.Getenv("SLURM_STEP_NUM_TASKS"))
}
