package task

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/task/judge"
)

// TestFewRowsValidate trains with one validation row and with two that are equal, where correlations and the r2 of one
// row aren't defined. Each run must end, open and be judged, and no file or score may have a number that JSON lacks.
func TestFewRowsValidate(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	configs := map[string]Config{"embed, scores": withFile(t, "embed", "scores.tsv", wordPairs(func(i, _ int) string { return fmt.Sprintf("\t%.2f", float64(i)/11) }))}
	for name, c := range configsOfRows(t) {
		if c.Task.Kind == data.KindRegression {
			plain := c
			plain.Mix = false
			configs[name+", not mixed"] = plain
		}
		configs[name] = c
	}
	for name, c := range configs {
		for rows := 1; rows <= 2; rows++ {
			name := fmt.Sprintf("%s, %d", name, rows)
			if testseed.LeftOut(name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				content := must.Get(os.ReadFile(c.Data.File))(t)
				c.Training.MaxEpochs, c.Data.ValidationFile = 1, filepath.Join(t.TempDir(), "validation.tsv")
				write(t, c.Data.ValidationFile, strings.Join(strings.SplitAfter(string(content), "\n")[:rows], ""))
				task, dir := trained(t, c)
				content, err := os.ReadFile(filepath.Join(dir, runfolder.SummaryFile))
				if err != nil || !json.Valid(content) {
					t.Errorf("summary.json is %s, %v", content, err)
				}
				run, err := ReadRun(dir)
				if err != nil || run.Summary.ValLoss == nil || run.Summary.ScoreName == "" && run.Summary.ValScore != nil {
					t.Fatalf("the run's summary is %+v, %v", run, err)
				}
				if undefined := c.Task.Kind == data.KindRegression && rows == 1; undefined && run.Summary.ValScore != nil {
					t.Errorf("%d rows have the score %v, want none", len(task.Examples()), *run.Summary.ValScore)
				}
				m := must.Get(Open(dir))(t)
				examples := task.Examples()
				for _, some := range [][]int{{0}, {0, 0}} {
					judgedRows := slices.Clone(examples[:0])
					for _, i := range some {
						judgedRows = append(judgedRows, examples[i])
					}
					r := must.Get(judge.Answers(t.Context(), m, judgedRows, PredictOptions{}))(t)
					must.Get(json.Marshal(judge.ScoresOf(m, nil, r)))(t)
				}
			})
		}
	}
}

// configsOfRows returns a configuration of each kind that learns rows of a file, with such a file.
func configsOfRows(t testing.TB) map[string]Config {
	found := map[string]Config{}
	for name, c := range configs(t) {
		if c.FromRows() {
			found[name] = c
		}
	}
	return found
}
