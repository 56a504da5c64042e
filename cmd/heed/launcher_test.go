//go:build !mpi || !cgo

package main

import (
	"bytes"
	"path/filepath"
	"testing"
)

// Without MPI, each process of a launcher would make a run of its own. The first process reports an error instead.
func TestLauncherWithoutMPI(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"OMPI_COMM_WORLD_RANK=0", "PMIX_RANK=0"} {
		cmd := process(small("--out=" + filepath.Join(t.TempDir(), "run"))...)
		cmd.Env = append(cmd.Env, variable)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		cmd.Run()
		fail(t, called{cmd.ProcessState.ExitCode(), "", stderr.String()}, 1, "built without MPI", "go build -tags mpi")
	}
	for _, size := range []string{"OMPI_COMM_WORLD_SIZE=1", "SLURM_STEP_NUM_TASKS=1"} { // a job of one process
		cmd := process(small("--max-epochs=1", "--out="+filepath.Join(t.TempDir(), "run"))...)
		cmd.Env = append(cmd.Env, "PMIX_RANK=0", size)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", size, err, out)
		}
	}
	cmd := process("version") // doesn't train
	cmd.Env = append(cmd.Env, "PMIX_RANK=0", "SLURM_NTASKS=4")
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	cmd = process(small("--max-epochs=1", "--out="+filepath.Join(t.TempDir(), "run"))...)
	cmd.Env = append(cmd.Env, "SLURM_NTASKS=4", "SLURM_PROCID=0") // as in a batch script of Slurm
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
