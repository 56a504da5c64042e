//go:build !mpi || !cgo

package main

import (
	"path/filepath"
	"testing"
)

// Without MPI, each process of a launcher would make a run of its own. The first process reports an error instead.
func TestLauncherWithoutMPI(t *testing.T) {
	t.Parallel()
	call := func(args []string, env ...string) called {
		cmd := process(args...)
		cmd.Env = append(cmd.Env, env...)
		return ended(cmd)
	}
	train := func() []string { return small("--max-epochs=1", "--out="+filepath.Join(t.TempDir(), "run")) }
	for _, variable := range []string{"OMPI_COMM_WORLD_RANK=0", "PMIX_RANK=0"} {
		fail(t, call(train(), variable), 1, "built without MPI", "go build -tags mpi")
	}
	for _, c := range []called{
		call(train(), "PMIX_RANK=0", "OMPI_COMM_WORLD_SIZE=1"), // a job of one process
		call(train(), "PMIX_RANK=0", "SLURM_STEP_NUM_TASKS=1"),
		call([]string{"version"}, "PMIX_RANK=0", "SLURM_NTASKS=4"), // doesn't train
		call(train(), "SLURM_NTASKS=4", "SLURM_PROCID=0"),          // as in a batch script of Slurm
	} {
		if c.code != 0 {
			t.Errorf("got %+v, want status 0", c)
		}
	}
}
