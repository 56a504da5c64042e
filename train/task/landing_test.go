package task

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train"
)

// Run folders that an earlier heed wrote must open, answer and resume as before. The first heed with format 5 wrote the
// files below testdata/landing on a processor with the instruction set avx512: two runs of 2 epochs, and the summaries
// of these runs after it resumed them with 4 epochs. The weights have the bits of those that commit 201f5d7 wrote with
// format 4. On processors with other instructions, the resumed weights differ in their last bits.
func TestEarlierFolders(t *testing.T) {
	for name, answers := range map[string]map[string]string{
		"copy": {"gorgon": "tw", "abc": "", "fed": "f"},
		"rows": {"frog sees tree": "thing", "dog runs cat": "thing", "bird finds zebra": "animal"},
	} {
		t.Run(name, func(t *testing.T) {
			original, dir := filepath.Join("testdata", "landing", name), filepath.Join(t.TempDir(), "run")
			must.Do(t, os.CopyFS(dir, os.DirFS(original)))
			wantAnswers(t, dir, answers)
			r, err := ReadRun(dir)
			if err != nil || len(r.History) != 2 || r.Summary == nil || r.Summary.Epochs != 2 || r.Untimed != 0 {
				t.Fatalf("got the run %+v, %v, want 2 checks with times and a summary", r, err)
			}
			files := must.Get(os.ReadDir(dir))(t)
			for _, file := range files { // reading changes nothing
				wantFiles(t, dir, original, file.Name())
			}

			var want Summary
			must.Do(t, json.Unmarshal([]byte(read(t, original+"-resumed.json")), &want))
			c := must.Get(ReadConfig(dir))(t)
			c.Training.MaxEpochs = 4
			got := run(t, made(t, c), dir, train.RunOptions{})
			if config := got.SHA256[runfolder.ConfigFile]; config != want.SHA256[runfolder.ConfigFile] || got.Epochs != want.Epochs {
				t.Errorf("resumed, %s has the checksum %s after %d epochs, want %s after %d", runfolder.ConfigFile, config, got.Epochs, want.SHA256[runfolder.ConfigFile], want.Epochs)
			}
			if kernel.Instructions() == "avx512" && !maps.Equal(got.SHA256, want.SHA256) {
				t.Errorf("resumed, the files have the checksums %v, want %v", got.SHA256, want.SHA256)
			}
			must.Get(ReadRun(dir))(t)
		})
	}
}

// wantAnswers opens the model of a folder and compares its answers.
func wantAnswers(t *testing.T, dir string, answers map[string]string) {
	t.Helper()
	m := must.Get(Open(dir))(t)
	for input, want := range answers {
		if got, err := m.Predict(input); err != nil || got != want {
			t.Errorf("%q: the model answers %q, %v, want %q", input, got, err, want)
		}
	}
}
