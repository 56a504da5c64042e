package runfolder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/heed-go/heed/internal/must"
)

// Settled must read again after a misfitError, at most three times in all, and not after other errors.
func TestSettled(t *testing.T) {
	broken, f := errors.New("broken"), Folder{Dir: "d"}
	for _, test := range []struct {
		errs []error // error of each call of read
		want string
	}{
		{[]error{nil}, ""},
		{[]error{broken, nil}, "broken"},
		{[]error{f.Misfit("a", "b"), fmt.Errorf("%w; really", f.Misfit("a", "b")), nil}, ""},
		{[]error{f.Misfit("a", "b"), f.Misfit("a", "b"), f.Misfit("a", "c"), nil}, "a and c in d don't belong together"},
	} {
		n := 0
		got, err := Settled(func() (int, error) { n++; return n, test.errs[n-1] })
		if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%v: got the error %v, want %q", test.errs, err, test.want)
		} else if test.want == "" && (err != nil || got != len(test.errs)) {
			t.Errorf("%v: got the result of reading %d, %v, want reading %d", test.errs, got, err, len(test.errs))
		}
	}
}

// The checksum of a summary must not depend on white space, its seconds and its own checksum, but on all other bytes.
func TestSummarySum(t *testing.T) {
	const summary = `{"task":"a","seconds":0,"params":7,"sha256":{"model.safetensors":"12","target.json":"34"}}`
	want := Sum([]byte(summary))
	for content, equal := range map[string]bool{
		summary: true,
		strings.ReplaceAll(summary, ",", ",\n  "):                      true,
		strings.Replace(summary, "0", "12.5", 1):                       true,
		strings.Replace(summary, `"12"`, `"12","summary.json":"5"`, 1): true,
		strings.Replace(summary, "7", "8", 1):                          false,
		strings.Replace(summary, `"34"`, `"35"`, 1):                    false,
		strings.Replace(summary, "seconds", "Seconds", 1):              false,
		strings.Replace(summary, `"a"`, `"a\"seconds\":3"`, 1):         false,
		summary[1:]: false,
	} {
		if got := SummarySum([]byte(content)); (got == want) != equal {
			t.Errorf("%s: got %s; want it equal to %s: %t", content, got, want, equal)
		}
	}
}

// A sealed content must pass. A change of any byte must be found, except in the quotes around the seal.
func TestSeal(t *testing.T) {
	content := []byte(`{"about":"` + Unsealed + `","sha256":"` + Unsealed + `"}`)
	Seal(content)
	sum := string(content[len(content)-2-len(Unsealed) : len(content)-2])
	if err := CheckSeal(content, sum); err != nil || strings.Count(string(content), Unsealed) != 1 {
		t.Errorf("the sealed content is %s: got the error %v", content, err)
	}
	for i := range content {
		changed := append([]byte(nil), content...)
		changed[i] ^= 1
		if CheckSeal(changed, sum) == nil {
			t.Errorf("no error after a change of byte %d to %s", i, changed)
		}
	}
	if err := CheckSeal(content, ""); err != nil {
		t.Errorf("without a checksum: got the error %v", err)
	}
}

// Checksums of large files are computed until the context ends.
func TestChecksumsEnd(t *testing.T) {
	w := must.Get(Lock(t.TempDir()))(t)
	defer w.Release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Do(t, w.WriteConfig(nil))
	must.Get(w.sums(t.Context()))(t)
	if _, err := w.sums(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the checksums of a cancelled context: got the error %v", err)
	}
}

// growing is a folder in which a run begins after somebody has looked for a first file.
type growing struct{ fstest.MapFS }

func (g growing) Lstat(name string) (fs.FileInfo, error) {
	info, err := g.MapFS.Lstat(name)
	for _, file := range []string{ConfigFile, WeightsFile, CheckpointFile} {
		g.MapFS[file] = &fstest.MapFile{}
	}
	return info, err
}

// A folder in which a run begins at this moment has a run or none, but isn't damaged.
func TestHasRunMeanwhile(t *testing.T) {
	f := Folder{growing{fstest.MapFS{}}, "run"}
	if _, err := f.HasRun(); err != nil {
		t.Error(err)
	}
	damaged := Folder{fstest.MapFS{WeightsFile: {}}, "run"}
	must.Refuse(damaged.HasRun())(t, "config.json is missing")
}
