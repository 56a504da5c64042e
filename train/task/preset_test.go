package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
)

// Every preset must give a task that learns, and must be the same after encoding to JSON and decoding.
func TestPresets(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	tasks := map[data.Kind]string{data.KindText: "text", data.KindSeq2Seq: "seq2seq"}
	for _, p := range Presets() {
		t.Run(p.Name, func(t *testing.T) {
			if p.Name == "base" {
				testseed.Proof(t)
			}
			c := small(t, tasks[p.Kind])
			must.Do(t, c.Apply(p.Name))
			var back Config
			if must.Do(t, json.Unmarshal(must.Get(json.Marshal(c))(t), &back)); !runfolder.SameJSON(back, c) {
				t.Errorf("decoded from JSON: got %+v, want %+v", back, c)
			}
			c.Training.BatchSize, c.Training.MaxEpochs = 4, 2
			if p.Kind == data.KindText {
				c.Training.StepsPerEpoch = 5
			} else {
				c.Data.File = rowsFile(t, p.Kind, 25)
			}
			task := made(t, c)
			if r, err := train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, train.RunOptions{Seed: task.Config.Seed}); err != nil || !(r.History[1].TrainLoss < r.History[0].TrainLoss) {
				t.Errorf("got the history %+v, %v, want a falling loss", r.History, err)
			}
		})
	}
	for _, test := range []struct{ task, preset, want string }{
		{"text", "small", `preset must be one of nanogpt, speedrun for the task text, got "small"`},
		{"copy", "nanogpt", `preset: the task copy has no presets, got "nanogpt"`},
		{"seq2seq", "nanogpt", `preset must be one of small, base for the task seq2seq, got "nanogpt"`},
		{"dates", "small", `preset: the task dates has no presets, got "small"`}, // seq2seq without a file
	} {
		c := small(t, test.task)
		before := c
		err := c.Apply(test.preset)
		var wrong *ConfigError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) || !runfolder.SameJSON(c, before) {
			t.Errorf("%s for %s: got error %v, want %q", test.preset, test.task, err, test.want)
		}
	}
}

// The preset nanogpt must have the number of parameters and the size of initial weights that nanoGPT's own code has.
func TestNanoGPT(t *testing.T) {
	c := small(t, "text")
	c.Task.MaxLen = 64
	must.Do(t, c.Apply("nanogpt"))
	m := made(t, c)
	total := 0
	for _, p := range m.Params.All() {
		values := p.Value.Float32s()
		total += len(values)
		want := 0.02
		switch {
		case strings.HasSuffix(p.Name, "bias"):
			t.Errorf("the model has a parameter %s, want no biases", p.Name)
		case strings.Contains(p.Name, "norm"):
			want = 1
		case strings.Contains(p.Name, "output") || strings.Contains(p.Name, "down"):
			want = 0.02 / math.Sqrt(8)
		}
		squares := 0.0
		for _, x := range values {
			squares += float64(x) * float64(x)
		}
		if got := math.Sqrt(squares / float64(len(values))); math.Abs(got-want) > 0.05*want {
			t.Errorf("%s has a root mean square of %v, want %v", p.Name, got, want)
		}
	}
	vocab := len(m.Config.Task.Alphabet)
	if want := (vocab+64)*128 + 4*(12*128*128+2*128) + 128; total != want {
		t.Errorf("the model has %d parameters, want %d", total, want)
	}
}

// The presets for seq2seq must have several blocks in the encoder and one block in the decoder.
func TestSeq2SeqPresets(t *testing.T) {
	for preset, encoder := range map[string]int{"small": 3, "base": 4} {
		c := small(t, "seq2seq")
		must.Do(t, c.Apply(preset))
		blocks := map[string]bool{}
		for _, p := range made(t, c).Params.All() {
			if before, _, ok := strings.Cut(p.Name, ".norm1."); ok {
				blocks[before] = true
			}
		}
		for i := range encoder {
			delete(blocks, fmt.Sprintf("encoder.blocks.%d", i))
		}
		if len(blocks) != 1 || !blocks["decoder.blocks.0"] {
			t.Errorf("%s: besides %d blocks of the encoder, the model has %v, want only decoder.blocks.0", preset, encoder, blocks)
		}
	}
}
