package atomicfile

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
)

// content returns content number i of a test. It is longer than any buffer and repeats a single byte.
func content(i int) []byte { return bytes.Repeat([]byte{'a' + byte(i%26)}, 300_000+i%26) }

func writing(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// checkFolder checks that the file at path has the wanted content, and that its folder holds no other file.
func checkFolder(t *testing.T, path string, want []byte) {
	t.Helper()
	got := must.Get(os.ReadFile(path))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("the file has %d bytes that begin with %.20q, want %d that begin with %.20q", len(got), got, len(want), want)
	}
	entries := must.Get(os.ReadDir(filepath.Dir(path)))(t)
	if len(entries) != 1 {
		t.Errorf("the folder holds %v, want only the file", entries)
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for i, want := range [][]byte{content(1), content(0), {}, []byte("short")} {
		if err := WriteFile(path, writing(want)); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		checkFolder(t, path, want)
	}
}

func TestWriteFileInWorkingFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, WriteFile("f", writing([]byte("x"))))
	checkFolder(t, "f", []byte("x"))
}

func TestPermissions(t *testing.T) {
	dir := t.TempDir()
	usual := must.Get(os.OpenFile(filepath.Join(dir, "usual"), os.O_CREATE|os.O_WRONLY, 0o644))(t)
	defer usual.Close()
	must.Do(t, WriteFile(filepath.Join(dir, "f"), writing(nil)))
	want, _ := usual.Stat()
	got, _ := os.Stat(filepath.Join(dir, "f"))
	if got.Mode() != want.Mode() {
		t.Errorf("got mode %v, want %v", got.Mode(), want.Mode())
	}
}

// The temporary file is named after the file. A long name is cut, at the end of a character.
func TestTemporaryFile(t *testing.T) {
	for name, temp := range map[string]string{
		"model.safetensors":                               "model.safetensors",
		strings.Repeat("n", 245):                          strings.Repeat("n", 100),
		strings.Repeat("n", 99) + strings.Repeat("é", 70): strings.Repeat("n", 99),
	} {
		path := filepath.Join(t.TempDir(), name)
		must.Do(t, WriteFile(path, func(io.Writer) error {
			temps, err := filepath.Glob(filepath.Join(filepath.Dir(path), "."+temp+".tmp-*"))
			if len(temps) != 1 {
				t.Errorf("got temporary files %q, want one", temps)
			}
			return err
		}))
		checkFolder(t, path, nil)
	}
}

var errWanted = errors.New("wanted")

// failing is a file that fails, as on a full or broken disk. Its errors have its name.
type failing struct {
	*os.File
	room        int  // number of bytes that Write accepts
	sync, close bool // whether these methods fail
}

func (f *failing) failed(fails bool) error {
	if !fails {
		return nil
	}
	return &fs.PathError{Op: "do", Path: f.Name(), Err: errWanted}
}

func (f *failing) Write(b []byte) (int, error) {
	n, err := f.File.Write(b[:min(f.room, len(b))])
	f.room -= n
	return n, cmp.Or(err, f.failed(n < len(b)))
}

func (f *failing) Sync() error  { return cmp.Or(f.File.Sync(), f.failed(f.sync)) }
func (f *failing) Close() error { return cmp.Or(f.File.Close(), f.failed(f.close)) }

// After an error, the file is as before. The error has the name of the file, not of the temporary file.
func TestErrorLeavesTheOldFile(t *testing.T) {
	ignoring := func(w io.Writer) error {
		for i := range 3 {
			w.Write(content(i))
		}
		return nil
	}
	tests := []struct {
		name  string
		write func(io.Writer) error
		file  failing
	}{
		{"write fails at once", func(io.Writer) error { return errWanted }, failing{room: math.MaxInt}},
		{"write fails half-way", func(w io.Writer) error {
			return errors.Join(writing(content(1))(w), errWanted)
		}, failing{room: math.MaxInt}},
		{"disk full at once", writing(content(1)), failing{room: 0}},
		{"disk full half-way", writing(content(1)), failing{room: 100_000}},
		{"disk full at the flush", writing([]byte("short")), failing{room: 3}},
		{"disk full, and write ignores it", ignoring, failing{room: 400_000}},
		{"sync fails", writing(content(1)), failing{room: math.MaxInt, sync: true}},
		{"close fails", writing(content(1)), failing{room: math.MaxInt, close: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			must.Do(t, WriteFile(path, writing([]byte("old"))))
			err := writeFile(path, test.write, func(path string) (file, error) {
				f, err := createTemp(path)
				if err != nil {
					return nil, err
				}
				test.file.File = f.(*os.File)
				return &test.file, nil
			})
			if want := "write " + path + ": wanted"; !errors.Is(err, errWanted) || err.Error() != want {
				t.Errorf("got error %v, want %s", err, want)
			}
			checkFolder(t, path, []byte("old"))
		})
	}
}

func TestPanicLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	must.Do(t, WriteFile(path, writing([]byte("old"))))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("WriteFile returned, want the panic of write")
			}
		}()
		WriteFile(path, func(w io.Writer) error {
			w.Write(content(1))
			panic("wanted")
		})
	}()
	checkFolder(t, path, []byte("old"))
}

func TestPathThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	plain, folder, closed := filepath.Join(dir, "plain"), filepath.Join(dir, "folder"), filepath.Join(dir, "closed")
	must.Do(t, errors.Join(os.WriteFile(plain, []byte("old"), 0o644), os.Mkdir(folder, 0o755), os.Mkdir(closed, 0o555)))
	tests := []struct {
		name, path string
		want       error // nil means any error
	}{
		{"no path", "", errFolder},
		{"missing folder", filepath.Join(dir, "missing", "f"), fs.ErrNotExist},
		{"file for a folder", filepath.Join(plain, "f"), nil},
		{"an existing folder", folder, errFolder},
		{"trailing separator", folder + string(filepath.Separator), errFolder},
		{"dots", filepath.Join(folder) + string(filepath.Separator) + "..", errFolder},
		{"unwritable folder", filepath.Join(closed, "f"), fs.ErrPermission},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.name == "unwritable folder" && (os.Geteuid() == 0 || runtime.GOOS == "windows") {
				t.Skip("this user may write to any folder")
			}
			err := WriteFile(test.path, writing([]byte("new")))
			if err == nil || !strings.HasPrefix(err.Error(), "write "+test.path+": ") || strings.Contains(err.Error(), ".tmp-") {
				t.Errorf("got error %v, want one that names %q and no temporary file", err, test.path)
			}
			if test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got error %v, want one that wraps %v", err, test.want)
			}
			for path, want := range map[string]int{dir: 3, folder: 0, closed: 0} {
				if entries, _ := os.ReadDir(path); len(entries) != want {
					t.Errorf("%s holds %v, want it unchanged", path, entries)
				}
			}
			if got, _ := os.ReadFile(plain); string(got) != "old" {
				t.Errorf("the plain file holds %q, want old", got)
			}
		})
	}
}

func TestConcurrentWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	must.Do(t, WriteFile(path, writing(content(0))))
	var writers, readers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 3 {
				if err := WriteFile(path, writing(content(i))); err != nil && runtime.GOOS != "windows" {
					t.Error(err) // Windows may refuse to replace a file that another writer is replacing
				}
			}
		})
	}
	done := make(chan struct{})
	readers.Go(func() {
		for runtime.GOOS != "windows" { // Windows can't read a file while it is replaced
			select {
			case <-done:
				return
			default:
				checkWhole(t, path)
			}
		}
	})
	writers.Wait()
	close(done)
	readers.Wait()
	got, _ := os.ReadFile(path)
	checkFolder(t, path, got)
}

// checkWhole checks that a file holds exactly content(i) for some i.
func checkWhole(t *testing.T, path string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	} else if len(got) == 0 || !bytes.Equal(got, content(int(got[0]-'a'))) {
		t.Errorf("read %d bytes, want a whole file", len(got))
	}
}

// victim is an environment variable with a path. It makes the test binary write to this path until it is killed.
const victim = "ATOMICFILE_TEST_VICTIM"

func TestMain(m *testing.M) {
	path := os.Getenv(victim)
	if path == "" {
		os.Exit(m.Run())
	}
	if filepath.Base(path) == "stuck" { // stops halfway through the file
		WriteFile(path, func(w io.Writer) error {
			w.Write(content(1))
			fmt.Println("ready")
			time.Sleep(time.Minute)
			return nil
		})
		os.Exit(1)
	}
	fmt.Println("ready")
	for i := 0; ; i++ {
		if err := WriteFile(path, writing(content(i))); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// startVictim starts a process that writes to path, and returns once it has begun.
func startVictim(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), victim+"="+path)
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	t.Cleanup(func() { c.Process.Kill() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the writing process printed %q, want ready", line)
	}
	return c
}

func kill(t *testing.T, c *exec.Cmd) {
	t.Helper()
	must.Do(t, c.Process.Kill())
	c.Wait()
}

func TestKilledHalfWayLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stuck")
	must.Do(t, WriteFile(path, writing([]byte("old"))))
	kill(t, startVictim(t, path))
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("got %d bytes and error %v, want the old file", len(got), err)
	}
	temps, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".stuck.tmp-*"))
	if len(temps) != 1 {
		t.Errorf("the killed process left %v, want one temporary file named after the file", temps)
	}
}

func TestKilledAnywhereLeavesAWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	must.Do(t, WriteFile(path, writing(content(0))))
	for i := range 6 {
		c := startVictim(t, path)
		time.Sleep(time.Duration(i) * 5 * time.Millisecond)
		kill(t, c)
		checkWhole(t, path)
	}
}
