package task

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
)

// embedding makes a vector of each source.
type embedding struct{ common }

var embedKind = embedding{common{facts{
	name: data.KindEmbed, help: "a vector of each text, from the pairs of texts in a file",
	format: &rows.Format{}, together: true, learns: "vectors", small: true,
	micro:    1,                   // only the texts of the same micro-batch are negatives
	fineRate: 5e-5, fineBatch: 32, // its vectors are mostly good already; the other rows of a batch are the negatives
	losses: named{
		{Name: "contrastive", About: "InfoNCE: the second text of a row is nearer to the first than the other texts of the batch and the row's hard negatives"},
		{Name: "cosine", About: "mean squared difference of the cosine of two texts and their score"},
	},
}}}

// defaultTemperature is the Temperature that 0 stands for.
const defaultTemperature = 0.05

func (embedding) defaults(c *Config) { c.Head.Normalize = true }

// check returns an error if a setting makes no sense for vectors of texts.
func (k embedding) check(c *Config) error {
	t := &c.Training
	switch {
	case c.Drawn():
		return setting.Errorf("%s %s must come with %s, the file to learn from", setting.Path("task"), c.Task.Name, setting.Path("data.file"))
	case t.Temperature != 0 && (c.Task.Scored || t.Loss == "cosine"):
		return setting.Errorf("%s is for the loss contrastive, and the rows of the file have scores", setting.Path("training.temperature"))
	}
	return k.common.check(c)
}

var scoreColumn = table.Column{Role: "score", Names: []string{"score", "similarity", "similarity_score", "label"}}

// negativeColumn describes the column of hard negative i, from 1.
func negativeColumn(i int) table.Column {
	names := []string{fmt.Sprint("negative_", i), fmt.Sprint("negative", i)}
	if i == 1 {
		names = append(names, "negative", "hard_negative")
	}
	return table.Column{Role: fmt.Sprint("negative ", i), Names: names}
}

// columns describes the columns of files with several texts per row. If New hasn't read the file yet, it counts the
// Columns.
func (embedding) columns(c *Config) []table.Column {
	columns := []table.Column{
		{Role: "query", Names: []string{"query", "anchor", "question", "text1", "sentence1", "first", "source"}},
		{Role: "positive", Names: []string{"positive", "answer", "passage", "document", "text2", "sentence2", "second", "target"}},
	}
	if c.Task.Scored {
		return append(columns, scoreColumn)
	}
	for i := 1; i+2 <= cmp.Or(c.Task.Texts, len(c.Data.Columns)); i++ {
		columns = append(columns, negativeColumn(i))
	}
	return columns
}

// look sets the rule's Texts and Scored, unless they are set. A third column is a score if its name says so, if
// the first rows of the file have a number there, or if the loss is for scores. Otherwise it is a hard negative.
func (k embedding) look(c *Config, file string) {
	rule, wanted := &c.Task, c.Data.Columns
	if rule.Texts > 0 {
		return
	}
	var head [][]string
	if c.Data.TargetFile == "" {
		head = table.Head(file, table.Options{Encoding: c.Data.Encoding, Header: c.Data.Header, Quotes: c.Data.Quotes, Columns: wanted, Known: k.columns(c)})
	}
	names := append(head, nil)[0]
	isScore := func(column int) bool {
		return column >= 0 && (column == scoreColumn.Index(names) || slices.ContainsFunc(head, func(row []string) bool {
			if column >= len(row) {
				return false
			}
			_, err := text.Number(row[column])
			return err == nil
		}))
	}
	rule.Texts = max(2, len(wanted))
	switch {
	case wanted == nil:
		for negativeColumn(rule.Texts-1).Index(names) >= 0 {
			rule.Texts++
		}
		rule.Scored = rule.Texts == 2 && (scoreColumn.Index(names) >= 0 || len(names) == 3 && isScore(2))
	case len(wanted) == 3:
		column, err := strconv.Atoi(wanted[2])
		if column--; err != nil {
			column = (table.Column{Names: wanted[2:]}).Index(names)
		}
		rule.Scored = isScore(column)
	}
	if c.Training.Loss != "" {
		rule.Scored = c.Training.Loss == "cosine"
	}
	if rule.Scored {
		rule.Texts = 2
	}
}

// row returns a function that returns an error if the score of a row isn't one.
func (embedding) row(c *Config) func(fields []string) error {
	if !c.Task.Scored {
		return nil
	}
	return func(fields []string) error {
		score := fields[1][strings.LastIndexByte(fields[1], '\t')+1:]
		x, err := text.Number(score)
		if err == nil && !(x >= -1 && x <= 1) {
			err = fmt.Errorf("the score is %s: scores must be from -1 to 1, or from 0 to 1; divide by the greatest", score)
		}
		return err
	}
}

// rows adds a note about the texts of a row. It chooses a batch size, as large batches have more negatives.
func (embedding) rows(c *Config, s *rows.Set) error {
	note := "scores: the cosine of the two texts learns them"
	if !c.Task.Scored {
		note = "negatives: the other texts of a batch"
		if n := c.Task.Texts - 2; n > 0 {
			note += fmt.Sprintf(", and %s in each row", text.Count(n, "hard negative"))
		}
		if c.Training.BatchSize == 0 && s.Train.Len() >= 1000 {
			c.Training.BatchSize = 64
		}
	}
	s.Description.Notes = append(s.Description.Notes, note)
	return nil
}

func (embedding) learner(m *model.Model, c *Config, _ []float64) learner { return vectorLearner{m, c} }

// A vectorLearner learns one vector per text. A batch has several texts per row.
type vectorLearner struct {
	model  *model.Model
	config *Config
}

// targets returns the numbers of the texts (B, K). With scores, it also returns (B, B·K) scores and their weights: each
// row has a score at the index of its second text, and elsewhere the weight is 0.
func (e vectorLearner) targets(b data.Batch) []*tensor.Dense {
	each := e.model.Coder.Layout().Texts
	rows := b.Size / each
	values := []*tensor.Dense{ops.IntTensor(b.Targets, rows, each)}
	if e.config.Task.Scored {
		scores, weights := make([]float32, rows*b.Size), make([]float32, rows*b.Size)
		for i := range rows {
			if x := b.Numbers[i*each]; x == x {
				scores[i*b.Size+i*each+1], weights[i*b.Size+i*each+1] = x, 1
			}
		}
		for _, column := range [][]float32{scores, weights} {
			values = append(values, tensor.New(tensor.WithShape(rows, b.Size), tensor.WithBacking(column)))
		}
	}
	return values
}

func (e vectorLearner) loss(b *layers.Build, out *G.Node, targets G.Nodes) (layers.Loss, []train.Metric, error) {
	c, temperature := e.config, 1.0
	if !c.Task.Scored {
		temperature = cmp.Or(c.Training.Temperature, defaultTemperature)
	}
	var err error
	if !c.Head.Normalize {
		out, err = layers.Normalize(b, out)
	}
	if err != nil {
		return layers.Loss{}, nil, err
	}
	logits, positives, err := layers.Contrastive(b, out, targets[0], temperature) // (B·K, Dim) -> (B, B·K)
	if err != nil {
		return layers.Loss{}, nil, err
	}
	if c.Task.Scored {
		loss, err := layers.MeanSquaredError(b, logits, targets[1], targets[2])
		if err != nil {
			return layers.Loss{}, nil, err
		}
		computed, err := distances(b, logits, targets[1], targets[2])
		return loss, computed, err
	}
	loss, err := layers.CrossEntropy(b, logits, positives, layers.CrossEntropyOptions{})
	if err != nil {
		return layers.Loss{}, nil, err
	}
	nearest, err := train.Accuracy(b, logits, positives)
	nearest.Name = "batch_accuracy"
	return loss, []train.Metric{nearest}, err
}
