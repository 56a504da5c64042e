package task

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/safetensors"
)

// A baseline is the simple model that is compared with a task's model: a linear model of the words and the characters
// of the sources. If the configuration is Wide, the task's model starts from its scores.
type baseline struct {
	*linear.Model
	held   []float32          // (training rows, outputs): scores by models that haven't seen the row; nil from Open
	values map[string]float64 // on the validation rows, by the names of the kind's metrics
}

// hasBaseline reports whether the rows of the task have a baseline.
func (c *Config) hasBaseline() bool { return c.fromRows() && kindOf(c.Task.Kind).about().linear }

// linearRows returns the sources of rows.
func linearRows(p rows.Part) linear.Rows {
	return linear.Rows{N: p.Len(), Text: func(i int) string { return p.Example(i).Source }}
}

func (c *Config) linearOptions() linear.Options {
	o := linear.Options{Pairs: c.Task.Pairs, Seed: c.Seed}
	if c.Kind().aligned {
		o.Grams = linear.TokenGrams
	}
	return o
}

// linearTexts returns the texts that the linear model reads: the sources or, if each symbol has an answer, each symbol
// of them with its neighbours. The texts of source i have the numbers from starts[i] to starts[i+1]-1.
func (c *Config) linearTexts(sources linear.Rows) (texts linear.Rows, starts []int) {
	starts = make([]int, sources.N+1)
	if !c.Kind().aligned {
		for i := range starts {
			starts[i] = i
		}
		return sources, starts
	}
	var symbols []string // of all sources
	var owners []int32   // number of the source of each symbol
	for i := range sources.N {
		text := sources.Text(i)
		tokens, _, _ := c.Task.Tagged(text) // sources with an error have no symbols
		for _, t := range tokens {
			symbols, owners = append(symbols, text[t.Start:t.End]), append(owners, int32(i))
		}
		starts[i+1] = len(symbols)
	}
	return linear.Rows{N: len(symbols), Text: func(k int) string {
		i := owners[k]
		return linear.Neighbours(symbols[starts[i]:starts[i+1]], k-starts[i])
	}}, starts
}

// fitClasses fits a linear classifier to the classes of all texts of linearTexts. It scales the scores so that their
// softmax has the least cross-entropy on the training rows, by models that haven't seen the row.
func (c *Config) fitClasses(ctx context.Context, coder data.Coder, s *rows.Set) (*linear.Model, []float32, error) {
	classesOf := c.classesOf()
	labels := func(p rows.Part) (classes []int) {
		for answer := range p.Answers() {
			classes = append(classes, classesOf(answer)...)
		}
		return classes
	}
	trained := labels(s.Train)
	train, _ := c.linearTexts(linearRows(s.Train))
	validation, _ := c.linearTexts(linearRows(s.Validation))
	classes := coder.Layout().Classes
	m, held, err := linear.FitClasses(ctx, train, trained, classes, validation, labels(s.Validation), c.linearOptions())
	if err != nil {
		return nil, nil, err
	}
	scale := bestScale(held, trained, classes)
	m.Scale(scale, 0)
	for i := range held {
		held[i] *= scale
	}
	return m, held, nil
}

// rowScores are the scores of a baseline for the texts of linearTexts, (texts, classes). The texts of source i have the
// numbers from starts[i] to starts[i+1]-1.
type rowScores struct {
	values  []float32
	starts  []int
	classes int
}

// of returns the scores of source i, (texts, classes).
func (s rowScores) of(i int) []float32 {
	return s.values[s.starts[i]*s.classes : s.starts[i+1]*s.classes]
}

// gather returns the scores of some rows for their batch, (Size, TargetLen, classes) or (Size, classes). Positions
// without a tag, and additional rows, have zeros.
func (s rowScores) gather(rows []int, b data.Batch) []float32 {
	width := max(b.TargetLen, 1)
	gathered := make([]float32, len(b.Targets)*s.classes)
	for i, row := range rows {
		scores := s.of(row)
		for j := i * width; j < (i+1)*width; j++ {
			if b.TargetLen == 0 || b.Targets[j] != data.Ignore {
				scores = scores[copy(gathered[j*s.classes:][:s.classes], scores):]
			}
		}
	}
	return gathered
}

// baselineText describes the values of a baseline, such as "Baseline: a linear model of words and characters, accuracy
// 0.7600, macro f1 0.7100". Without values, it returns "".
func baselineText(names metrics, values map[string]float64) string {
	var words []string
	for _, m := range names {
		if v, ok := values[m.Name]; ok {
			words = append(words, fmt.Sprintf("%s %.4f", spoken(m.Name), v))
		}
	}
	if words == nil {
		return ""
	}
	return "Baseline: a linear model of words and characters, " + strings.Join(words, ", ") + "\n"
}

// heldTensor is the name of the tensor with the field held of a baseline. The linear model has the other tensors.
const heldTensor = "held"

// valuesKey is the key in the metadata of a baseline. Its text is the field values as JSON.
const valuesKey = "heed.values"

func (b *baseline) tensors() []safetensors.Tensor {
	held := safetensors.Tensor{Name: heldTensor, Shape: []int{len(b.held) / b.Outputs(), b.Outputs()}, Data: b.held}
	return append(b.Tensors(), held)
}

func (b *baseline) metadata() map[string]string {
	values, _ := json.Marshal(b.values) // finite, so there is no error
	return map[string]string{valuesKey: string(values)}
}

// openBaseline reads the baseline of a run folder. If there is none, the error wraps fs.ErrNotExist. Only training
// needs the scores of the training rows.
func (c *Config) openBaseline(f runfolder.Folder, forTraining bool) (*baseline, error) {
	var b *baseline
	file, size, err := f.Open(runfolder.BaselineFile)
	if err == nil {
		defer file.Close()
		b, err = c.readBaseline(file, size, forTraining)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(runfolder.BaselineFile), err)
	}
	return b, nil
}

func (c *Config) readBaseline(r io.Reader, size int64, forTraining bool) (*baseline, error) {
	tensors, metadata, err := runfolder.ReadBaseline(r, size, c.id(), func(name string) bool { return name != heldTensor || forTraining })
	if err != nil {
		return nil, err
	}
	b := &baseline{}
	var own []safetensors.Tensor
	for _, t := range tensors {
		if held, ok := t.Data.([]float32); ok && t.Name == heldTensor {
			b.held = held
		} else {
			own = append(own, t)
		}
	}
	if b.Model, err = linear.FromTensors(own); err != nil {
		return nil, err
	}
	return b, json.Unmarshal([]byte(metadata[valuesKey]), &b.values)
}
