package beside

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/safetensors"
)

// The chain equals the sum over all sequences of tags, also with scores and transitions far from 0.
func TestChain(t *testing.T) {
	const classes, length = 3, 4
	r := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{1, 5, 13} {
		x, scores := make([]float64, (classes+1)*classes), make([]float32, length*classes)
		for i := range x {
			x[i] = max(-mostTransition, min(mostTransition, scale*r.NormFloat64()))
		}
		for i := range scores {
			scores[i] = float32(3 * scale * r.NormFloat64())
		}
		sequences, logs := [][]float64{}, []float64{}
		for n := range int(math.Pow(classes, length)) {
			var tags []float64
			row, sum := 0, 0.0
			for i := range length {
				tag := n % classes
				n /= classes
				tags, sum = append(tags, float64(tag)), sum+x[row*classes+tag]+float64(scores[i*classes+tag])
				row = tag + 1
			}
			sequences, logs = append(sequences, tags), append(logs, sum)
		}
		total := logSum(logs)
		want := make([]float64, length*classes)
		c := newChain(x, classes)
		for n, tags := range sequences {
			if got := c.logProb(scores, tags); math.Abs(got-(logs[n]-total)) > 1e-4 {
				t.Errorf("scale %g: the tags %v have the log-probability %g, want %g", scale, tags, got, logs[n]-total)
			}
			for i, tag := range tags {
				want[i*classes+int(tag)] += math.Exp(logs[n] - total)
			}
		}
		c.update(scores)
		for i, s := range scores {
			if got := math.Exp(float64(s)); math.Abs(got-want[i]) > 1e-5 {
				t.Errorf("scale %g: symbol %d has tag %d with probability %g, want %g", scale, i/classes, i%classes, got, want[i])
			}
		}
	}
}

func logSum(logs []float64) (sum float64) {
	for _, x := range logs {
		sum += math.Exp(x - logs[0])
	}
	return logs[0] + math.Log(sum)
}

// Tags 1 and 2 take turns, so a symbol that could be either has the tag that its neighbours leave. Where tags are
// independent, neighbours change no answer.
func TestLearnTransitions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, tag := range map[string]func(before int) int{
		"turns":       func(before int) int { return 1 + before%2 },
		"independent": func(int) int { return r.IntN(3) },
	} {
		const sources, length, classes = 200, 6, 3
		var tags []float64
		var scores []float32
		starts := []int{0}
		for range sources {
			before := r.IntN(3)
			for i := range length {
				before = tag(before)
				row := [classes]float32{}
				row[before] = 2
				if i == 3 {
					row = [classes]float32{0, 1, 1.01} // not known
				}
				tags, scores = append(tags, float64(before)), append(scores, row[:]...)
			}
			starts = append(starts, len(tags))
		}
		m := &Model{Model: linear.NewModel(&linear.Vocabulary{}, classes, make([]float32, classes))}
		m.LearnTransitions(tags, starts, scores, tags, starts)
		right := 0
		for i := range sources {
			at := i*length + 3
			if row := scores[at*classes:][:classes]; (row[2] > row[1]) == (tags[at] == 2) {
				right++
			}
		}
		if turns := name == "turns"; turns != (right == sources) {
			t.Errorf("%s: %d of %d symbols have the right tag", name, right, sources)
		}
	}
	many := &Model{Model: linear.NewModel(&linear.Vocabulary{}, maxTags+1, make([]float32, maxTags+1))}
	if many.LearnTransitions(nil, []int{0}, nil, nil, []int{0}); many.Transitions != nil {
		t.Errorf("%d tags have transitions", maxTags+1)
	}
}

func TestReadTransitions(t *testing.T) {
	for text, want := range map[string]string{
		`[1,-2,3,4,0,40]`:       "",
		`[1, 2, 3, 4]`:          "it has 4 transitions for 2 tags",
		`[1, 2, 3, 4, 5, 40.1]`: "its transitions must be from -40 to 40",
		`[1, 2, 3, 4, 5, NaN]`:  "invalid character",
	} {
		m := &Model{Model: linear.NewModel(linear.NewVocabulary(linear.TokenGrams, false, 0, nil, nil), 2, make([]float32, 2)), Values: map[string]float64{}}
		metadata := m.Metadata()
		maps.Copy(metadata, runfolder.Metadata("run"))
		metadata[transitionsKey] = text
		var file bytes.Buffer
		must.Do(t, safetensors.Write(&file, m.Tensors(), metadata))
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, runfolder.BaselineFile), file.Bytes(), 0o666))
		got, err := Read(runfolder.At(dir), "run", 0)
		if want != "" {
			must.Fail(t, err, want)
		} else if err != nil || !slices.Equal(got.Transitions, []float64{1, -2, 3, 4, 0, 40}) {
			t.Errorf("%s: got %+v, %v", text, got, err)
		} else if again := got.Metadata()[transitionsKey]; again != text {
			t.Errorf("read %s, and would write %s", text, again)
		}
	}
}
