//go:build mpi && cgo

package mpi_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/heed-go/heed/train/mpi"
)

// asMember, in the environment, makes the test binary one process of a job.
const asMember = "HEED_TEST_AS_MEMBER"

func TestMain(m *testing.M) {
	if os.Getenv(asMember) == "" {
		os.Exit(m.Run())
	}
	if err := member(); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// member exchanges data with the other processes, and checks it: every process knows what the others send.
func member() error {
	group, leave, err := mpi.Join()
	if err != nil {
		return err
	}
	defer leave()
	rank, size := group.Rank(), group.Size()
	if launchers, launched := mpi.Rank(); rank != launchers || !launched {
		return fmt.Errorf("MPI says that this is process %d, the launcher says %d (launched: %t, want true)", rank, launchers, launched)
	}
	// message returns the slices that sender sends to receiver. It may return no slices, and some slices are empty.
	message := func(sender, receiver int) (slices [][]byte) {
		for i := range 4 * sender {
			slices = append(slices, bytes.Repeat([]byte{byte(16*sender + 4*receiver + i)}, (i%4)*(i%4)*(i%4)*(receiver+1)*9001))
		}
		return slices
	}
	for range 3 {
		mine := bytes.Repeat([]byte{byte(rank)}, 100)
		gathered := make([]byte, size*len(mine))
		if err := group.Gather(mine, gathered); err != nil {
			return err
		}
		for i, b := range gathered {
			if int(b) != i/len(mine) {
				return fmt.Errorf("gathered %d at %d, want %d", b, i, i/len(mine))
			}
		}
		if err := group.Gather(nil, nil); err != nil {
			return err
		}
		for round := range size {
			peer := (round - rank + size) % size
			if peer == rank {
				continue
			}
			want := message(peer, rank)
			var got [][]byte
			for _, s := range want {
				got = append(got, make([]byte, len(s)))
			}
			if err := group.Swap(peer, message(rank, peer), got); err != nil {
				return err
			}
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					return fmt.Errorf("slice %d of process %d isn't what it sent", i, peer)
				}
			}
		}
	}
	fmt.Println("done")
	return nil
}

func TestExchange(t *testing.T) {
	for _, n := range []string{"1", "2", "3", "4"} {
		cmd := exec.Command("mpirun", "--oversubscribe", "-n", n, os.Args[0])
		cmd.Env = append(os.Environ(), asMember+"=1", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
		out, err := cmd.CombinedOutput()
		if err != nil || fmt.Sprint(bytes.Count(out, []byte("done"))) != n {
			t.Errorf("%s processes: %v\n%s", n, err, out)
		}
	}
}

// TestAlone checks that Join doesn't start MPI without a launcher.
func TestAlone(t *testing.T) {
	group, leave, err := mpi.Join()
	if rank, launched := mpi.Rank(); group != nil || err != nil || rank != 0 || launched {
		t.Errorf("got group %v, error %v, rank %d, launched %t; want nil, nil, 0, false", group, err, rank, launched)
	}
	leave()
}
