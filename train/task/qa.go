package task

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
)

// answering finds the answer to a question in a context.
type answering struct{ common }

var qaKind = answering{common{facts{
	name: data.KindQA, help: "the part of a context that answers a question, in a file",
	format: &rows.Format{Windows: true, Columns: []table.Column{
		{Role: "question", Names: []string{"question", "query"}},
		{Role: "context", Names: []string{"context", "passage", "paragraph", "text", "document"}, Tabs: true},
		{Role: "answer", Names: []string{"answer", "answers", "answer_text"}, Empty: true, Raw: true},
	}},
	pairs: true, together: true, learns: "parts of texts",
}}}

var startColumn = table.Column{Role: "answer's first character", Names: []string{"answer_start", "start"}, Empty: true}

func (answering) defaults(c *Config) { c.Task.Pairs = true }

func (k answering) columns(c *Config) []table.Column {
	if c.Task.Starts || len(c.Data.Columns) == 4 {
		return append(slices.Clip(k.format.Columns), startColumn)
	}
	return k.format.Columns
}

// look sets the rule's Starts if the file has a column of them.
func (k answering) look(c *Config, file string) {
	if c.Data.Columns != nil {
		c.Task.Starts = len(c.Data.Columns) == 4
		return
	}
	head := table.Head(file, table.Options{Encoding: c.Data.Encoding, Header: c.Data.Header, Quotes: c.Data.Quotes, Known: k.format.Columns})
	c.Task.Starts = startColumn.Index(append(head, nil)[0]) >= 0
}

// row returns a function that writes the answers of a row as data.KindQA has them, or returns an error if the context
// doesn't have one.
func (answering) row(*Config) func(fields []string) error {
	return func(fields []string) error {
		_, context, _ := strings.Cut(fields[0], "\t")
		context = strings.ReplaceAll(context, "\t", " ") // as in answers, which have tabs between them
		var objects []struct {
			Text  string
			Start int `json:"answer_start"`
		}
		var squad struct {
			Text   []string `json:"text"`
			Starts []int    `json:"answer_start"`
		}
		if strings.HasPrefix(fields[1], "[") && json.Unmarshal([]byte(fields[1]), &objects) == nil {
			for _, object := range objects {
				squad.Text, squad.Starts = append(squad.Text, object.Text), append(squad.Starts, object.Start)
			}
		} else if json.Unmarshal([]byte(fields[1]), &squad) != nil || !strings.HasPrefix(fields[1], "{") {
			squad.Text = fields[1:2]
			if len(fields) > 2 && strings.TrimSpace(fields[2]) != "" && strings.TrimSpace(fields[1]) != "" {
				start, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(fields[2]), ".0")) // as pandas writes a column with gaps
				if err != nil {
					return fmt.Errorf("the answer's first character must be a whole number, got %.100q", fields[2])
				}
				squad.Starts = []int{start}
			}
		}
		if squad.Starts != nil && len(squad.Starts) != len(squad.Text) {
			return fmt.Errorf("there are %d answers, but %d first characters", len(squad.Text), len(squad.Starts))
		}
		var parts []string
		for i, answer := range squad.Text {
			answer = strings.ReplaceAll(answer, "\t", " ")
			trimmed := strings.TrimSpace(answer)
			if trimmed == "" {
				continue
			}
			if parts = append(parts, trimmed); squad.Starts == nil {
				if !strings.Contains(context, trimmed) {
					return fmt.Errorf("the answer %.100q isn't in the context", trimmed)
				}
				parts = append(parts, "")
				continue
			}
			start := byteOf(context, squad.Starts[i])
			if start < 0 || !strings.HasPrefix(context[start:], answer) {
				return fmt.Errorf("the answer %.100q isn't in the context at character %d", answer, squad.Starts[i])
			}
			start += len(answer) - len(strings.TrimLeftFunc(answer, unicode.IsSpace))
			parts = append(parts, strconv.Itoa(start))
		}
		if fields[1] = strings.Join(parts, "\t"); parts == nil {
			fields[1] = "\t" // a table has no empty fields
		}
		return nil
	}
}

// byteOf returns the byte at which character n of a text begins, counted from 0, or −1 if there is none.
func byteOf(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	if n != 0 {
		return -1
	}
	return len(text)
}

// read notes how many answers have several places.
func (answering) read(_ *Config, tables []*table.Table) (notes []string, err error) {
	several := 0
	for _, t := range tables {
		for i := range t.Len() {
			_, context, _ := strings.Cut(t.Field(i, 0), "\t")
			texts, starts := data.AnswersOf(t.Field(i, 1))
			if texts != nil && starts[0] < 0 && strings.Count(context, texts[0]) > 1 {
				several++
			}
		}
	}
	if several > 0 {
		notes = append(notes, fmt.Sprintf("answers: %s are in several places of their contexts, and the first is learned; a column answer_start would say which", text.Count(several, "answer")))
	}
	return notes, nil
}

// rows sets the rule's Unanswered if some training rows have no answer.
func (answering) rows(c *Config, s *rows.Set) error {
	empty := 0
	for answer := range s.Train.Answers() {
		if texts, _ := data.AnswersOf(answer); texts == nil {
			empty++
		}
	}
	if empty > 0 {
		c.Task.Unanswered = true
		s.Description.Notes = append(s.Description.Notes, fmt.Sprintf("no answer: %s, so the model may say so", text.Count(empty, "training row")))
	}
	return nil
}

func (answering) learner(*model.Model, *Config, []float64) learner { return spanLearner{} }

// A spanLearner learns the first and the last token of an answer. Its loss is the mean of the cross-entropies of both.
type spanLearner struct{}

// targets returns the correct positions (B, 2), and a term for the logits (B, Len, 2): −∞ for padding.
func (spanLearner) targets(b data.Batch) []*tensor.Dense {
	padding := make([]float32, 2*b.Size*b.Len)
	for row := range b.Size {
		for i := 2 * (row*b.Len + b.Lengths[row]); i < 2*(row+1)*b.Len; i++ {
			padding[i] = float32(math.Inf(-1))
		}
	}
	return []*tensor.Dense{ops.IntTensor(b.Targets, b.Size, 2), tensor.New(tensor.WithShape(b.Size, b.Len, 2), tensor.WithBacking(padding))}
}

func (spanLearner) loss(b *layers.Build, out *G.Node, nodes G.Nodes) (layers.Loss, []train.Metric, error) {
	logits, err := ops.Add(b.Env(), out, nodes[1])
	if err == nil {
		logits, err = ops.SwapLast(b.Env(), logits) // (B, Len, 2) -> (B, 2, Len)
	}
	if err != nil {
		return layers.Loss{}, nil, err
	}
	loss, err := layers.CrossEntropy(b, logits, nodes[0], layers.CrossEntropyOptions{})
	if err != nil {
		return layers.Loss{}, nil, err
	}
	right, counted, err := ops.CountRight(b.Env(), logits, nodes[0], -1, true)
	return loss, []train.Metric{{Name: "span_accuracy", Sum: right, Count: counted}}, err
}
