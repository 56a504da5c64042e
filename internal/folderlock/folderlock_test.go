package folderlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
)

// holder is an environment variable with a folder. It makes the test binary take the folder's lock and keep it.
const holder = "FOLDERLOCK_TEST_HOLDER"

func TestMain(m *testing.M) {
	dir := os.Getenv(holder)
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := Take(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	time.Sleep(time.Minute)
	os.Exit(1)
}

func TestTake(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		lock, err := Take(dir)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if _, err := Take(dir); err != ErrHeld {
			t.Errorf("round %d: taking a held lock gives the error %v, want %v", round, err, ErrHeld)
		}
		lock.Release()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("round %d: the folder holds %v, %v; want nothing", round, left, err)
		}
	}
	if _, err := Take(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("for a missing folder, the error is %v, want %v", err, fs.ErrNotExist)
	}
}

// TestMovedFolder moves a locked folder and makes a new one in its place. The old lock is lost then, and its release
// must not remove the new folder's lock.
func TestMovedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	take := func() *Lock {
		must.Do(t, os.Mkdir(dir, 0o777))
		lock := must.Get(Take(dir))(t)
		if err := lock.Check(); err != nil {
			t.Errorf("checking a held lock: got error %v, want none", err)
		}
		return lock
	}
	old := take()
	if err := os.Rename(dir, dir+"-2"); err != nil {
		t.Skipf("a locked folder can't be moved here: %v", err)
	}
	if err := old.Check(); err != ErrLost {
		t.Errorf("the folder was moved: got %v, want %v", err, ErrLost)
	}
	lock := take()
	if err := old.Check(); err != ErrLost {
		t.Errorf("the folder was replaced: got %v, want %v", err, ErrLost)
	}
	old.Release()
	if err := lock.Check(); err != nil {
		t.Errorf("the new folder's lock after the release of the old lock: got error %v, want none", err)
	}
	lock.Release()
}

// TestKilledHolder checks that a lock ends with its process.
func TestKilledHolder(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holder+"="+dir)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	answer := make([]byte, 5)
	if _, err := out.Read(answer); err != nil || string(answer) != "held\n" {
		t.Fatalf("the holder printed %q, error %v, want held", answer, err)
	}
	if _, err := Take(dir); err != ErrHeld {
		t.Errorf("taking another process's lock gives the error %v, want %v", err, ErrHeld)
	}
	cmd.Process.Kill()
	cmd.Wait()
	lock, err := Take(dir)
	if err != nil {
		t.Fatalf("taking the lock after the holder's end: %v", err)
	}
	lock.Release()
}

// TestOneAtATime checks that only one of many concurrent callers holds the lock, even while locks are released and
// their file is removed.
func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	var holders atomic.Int32
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				lock, err := Take(dir)
				if err == ErrHeld {
					runtime.Gosched()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				taken.Add(1)
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d callers hold the lock, want 1", n)
				}
				runtime.Gosched()
				holders.Add(-1)
				lock.Release()
			}
		})
	}
	wg.Wait()
	if taken.Load() < 100 {
		t.Errorf("the lock was taken %d times, want at least 100", taken.Load())
	}
}

// TestNoFile checks that Take neither follows nor removes a link or a folder with the lock file's name.
func TestNoFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("creating links needs special rights on Windows")
	}
	dir := t.TempDir()
	mine := filepath.Join(t.TempDir(), "mine")
	must.Do(t, os.Symlink(mine, filepath.Join(dir, Name)))
	if _, err := Take(dir); err == nil {
		t.Error("Take accepts a link as the lock file")
	}
	if _, err := os.Lstat(mine); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link was followed: %v", err)
	}
	folder := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(folder, Name), 0o777))
	if _, err := Take(folder); err == nil {
		t.Error("Take accepts a folder as the lock file")
	}
}
