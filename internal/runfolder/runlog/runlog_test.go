package runlog

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train"
)

// Read returns the history and the times that were written, and finds that a summary belongs to another history.
func TestRead(t *testing.T) {
	w := must.Get(runfolder.Lock(t.TempDir()))(t)
	defer w.Release()
	if _, err := Read(w.Folder, "id", new(any)); !errors.Is(err, ErrNoHistory) {
		t.Errorf("without a history: got the error %v, want %v", err, ErrNoHistory)
	}
	must.Do(t, w.WriteConfig([]byte("{}")))
	history := []train.Check{{Step: 5}, {Step: 10}}
	clock := Clock{steps: 5, taken: time.Second}
	for i := range history {
		must.Do(t, WriteHistory(w, history[:i+1]))
		must.Do(t, WriteTimes(w, &clock, history[:i+1]))
	}
	got := must.Get(Read(w.Folder, "id", new(any)))(t)
	if want := (Record{History: history, Seconds: []float64{0.2, 0}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	sums := map[string]string{}
	for _, name := range []string{runfolder.ConfigFile, runfolder.HistoryFile} {
		sums[name] = must.Get(w.Sum(name))(t)
	}
	summary := map[string]any{"sha256": sums}
	sums[runfolder.SummaryFile] = runfolder.SummarySum(must.Get(json.Marshal(summary))(t))
	must.Do(t, w.WriteSummary(summary))
	if got, err := Read(w.Folder, "id", new(any)); err != nil || !got.Finished {
		t.Errorf("a finished run: got Finished %v, error %v", got.Finished, err)
	}
	must.Do(t, WriteHistory(w, history[:1]))
	must.Refuse(Read(w.Folder, "id", new(any)))(t, runfolder.SummaryFile+" and "+runfolder.HistoryFile)
}
