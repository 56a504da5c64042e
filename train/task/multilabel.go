package task

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/linear/fit"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
)

// multiLabel gives each source any number of labels.
type multiLabel struct{ common }

var multiLabelKind = multiLabel{common{facts{
	name: data.KindMultiLabel, help: "all labels of each text in a file",
	format: &rows.Format{Columns: []table.Column{
		textColumn,
		{Role: "labels", Names: labelNames},
	}},
	pairs: true, linear: linearLabels{}, learns: "several labels per row",
}}}

func (k multiLabel) defaults(c *Config) { c.Task.Separator = cmp.Or(c.Task.Separator, "|") }

func (k multiLabel) columns(c *Config) []table.Column {
	columns := slices.Clone(k.common.columns(c))
	columns[len(columns)-1].Several = c.Task.Separator
	return columns
}

// row refuses a number for each label of the file, such as 0, 1, 0, in place of the names of a row's labels.
func (multiLabel) row(c *Config) func(fields []string) error {
	return func(fields []string) error {
		parts := strings.Split(fields[len(fields)-1], c.Task.Separator)
		numbers := map[string]bool{}
		for _, part := range parts {
			if numbers[part] = true; !slices.Contains([]string{"0", "1", "0.0", "1.0", "false", "true"}, part) {
				return nil
			}
		}
		if len(numbers) < len(parts) {
			return fmt.Errorf("the labels %.60q are a number for each label of the file: write the names of the row's labels", parts)
		}
		return nil
	}
}

// learnLabels makes a task for one label per row one for several. Small embeddings make a better network here, too, but
// one that adds less to the linear model.
func (c *Config) learnLabels() {
	c.Task.Name, c.Task.Kind, c.Task.About = string(data.KindMultiLabel), data.KindMultiLabel, multiLabelKind.help
	c.Model.EmbeddingInit = layers.Init{}
	multiLabelKind.defaults(c)
}

// rows sets the rule's Classes to the labels of the file, and adds their counts to the description.
func (multiLabel) rows(c *Config, s *rows.Set) error {
	trains, validates, names := map[string]int{}, map[string]int{}, map[string]bool{}
	total, bare, largest := 0, 0, 0 // labels and rows without labels, in training, and the most labels of a row
	for i, counts := range []map[string]int{trains, validates} {
		for answer := range []rows.Part{s.Train, s.Validation}[i].Answers() {
			labels := c.Task.Labels(answer)
			largest = max(largest, len(labels))
			for _, label := range labels {
				counts[label]++
				names[label] = true
			}
			if i == 0 {
				if total += len(labels); len(labels) == 0 {
					bare++
				}
			}
		}
	}
	if n := len(names); c.Task.Classes == nil && (n < 1 || n > maxClasses) {
		return setting.Errorf("data file %q has %s, but needs 1 to %d different labels: set %s to the columns of texts and labels, and %s to what stands between labels",
			c.Data.File, text.Count(n, "label"), maxClasses, setting.Path("data.columns"), setting.Path("task.separator"))
	}
	if joined, separator := severalLabels(slices.Sorted(maps.Keys(names))); c.Task.Classes == nil && joined != "" && largest < 2 {
		return setting.Errorf("data file %q: %.60q seems to be several labels: set %s to %q", c.Data.File, joined, setting.Path("task.separator"), separator)
	}
	if c.Task.Classes == nil {
		c.Task.Classes = slices.Sorted(maps.Keys(names))
		if stopping := &c.Training.Stopping; s.Validation.Len() > 0 && stopping.Monitor == "" && stopping.Mode == "" {
			stopping.Monitor, stopping.Mode = "val_average_precision", "max"
		}
	}
	var counts, few, unseen []count
	for _, name := range c.Task.Classes {
		counts = append(counts, count{name, trains[name]})
		switch n := validates[name]; {
		case n >= fewRows:
		case trains[name] == 0:
			unseen = append(unseen, count{name, n})
		default:
			few = append(few, count{name, n})
		}
	}
	n, d := s.Train.Len(), s.Description
	d.Notes = append(d.Notes, fmt.Sprintf("training labels: %.2f per row, %s without any; %s", float64(total)/float64(max(n, 1)), text.Count(bare, "row"), commonest(counts, n, " of rows")))
	if unseen != nil {
		d.Warnings = append(d.Warnings, "unknown: no training row has these labels of validation rows, so the model won't answer with them: "+fewest(unseen))
	}
	if few != nil && s.Validation.Len() > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("few validation rows: %s (with fewer than %d, scores per label are rough, and thresholds are drawn to the common one)", fewest(few), fewRows))
	}
	return nil
}

func (multiLabel) learner(_ *model.Model, c *Config, _ []float64) learner { return setLearner{c} }

// A setLearner learns for each label of a row whether the row has it.
type setLearner struct{ config *Config }

// targets returns 1 for each label that a row has and otherwise 0, (B, labels), and the weights of rows (B): 0 for
// padding, and otherwise 1.
func (setLearner) targets(b data.Batch) []*tensor.Dense {
	targets, weights := make([]float32, len(b.Targets)), make([]float32, b.Size)
	for i, target := range b.Targets {
		if target != data.Ignore {
			targets[i], weights[i/b.TargetLen] = float32(target), 1
		}
	}
	return []*tensor.Dense{
		tensor.New(tensor.WithShape(b.Size, b.TargetLen), tensor.WithBacking(targets)),
		tensor.New(tensor.WithShape(b.Size), tensor.WithBacking(weights)),
	}
}

func (setLearner) loss(b *layers.Build, out *G.Node, nodes G.Nodes) (loss layers.Loss, metrics []train.Metric, err error) {
	if loss, err = layers.BinaryCrossEntropy(b, out, nodes[0], nodes[1]); err != nil {
		return layers.Loss{}, nil, err
	}
	metrics, err = train.LabelMetrics(b, out, nodes[0], nodes[1])
	return loss, metrics, err
}

// linearLabels fits labels that don't exclude each other.
type linearLabels struct{}

// targets returns 1 for each label that the answer has, and otherwise 0.
func (linearLabels) targets(c *Config) func(answer string) []float64 {
	numbers := map[string]int{}
	for i, name := range c.Task.Classes {
		numbers[name] = i
	}
	return func(answer string) []float64 {
		targets := make([]float64, len(c.Task.Classes))
		for _, label := range c.Task.Labels(answer) {
			targets[numbers[label]] = 1
		}
		return targets
	}
}

func (linearLabels) sides(int) sides { return sides{width: 2, pairs: true} }

func (linearLabels) fit(ctx context.Context, train, validation linearPart, labels int, o fit.Options) (*linear.Model, *fit.Held, error) {
	var sets [2][][]int // labels of each row
	for i, part := range []linearPart{train, validation} {
		for targets := range slices.Chunk(part.targets, labels) {
			var set []int
			for label, x := range targets {
				if x == 1 {
					set = append(set, label)
				}
			}
			sets[i] = append(sets[i], set)
		}
	}
	return fit.Labels(ctx, train.texts, sets[0], labels, validation.texts, sets[1], o)
}

// commonRows is the number of rows with a label that weigh as much in its threshold as the threshold for all labels.
const commonRows = 10

// thresholds returns for each label the probability from which the answers of a mixture with the label have the
// greatest F1 score. The one that few rows choose is noise, so it is drawn to the one that is best for all labels
// together.
func (s *sides) thresholds(x logit.Mixture, labels int) []float64 {
	if len(s.classes) == 0 {
		return nil
	}
	odds, judged := x.Odds(unpaired(s.network), unpaired(s.linear)), make([]judgedLabel, 0, len(s.classes))
	for i, z := range odds {
		judged = append(judged, judgedLabel{logit.Logistic(float64(z)), s.classes[i] == 1})
	}
	thresholds := make([]float64, labels)
	common, _ := bestThreshold(slices.Clone(judged))
	for label := range thresholds {
		var some []judgedLabel
		for i := label; i < len(judged); i += labels {
			some = append(some, judged[i])
		}
		own, n := bestThreshold(some)
		thresholds[label] = rounded((n*own + commonRows*common) / (n + commonRows))
	}
	return thresholds
}

// A judgedLabel is the probability of a label for a row, and whether the row has it.
type judgedLabel struct {
	p     float64
	right bool
}

// bestThreshold returns the middle between two probabilities above which F1 is greatest, and the number of rows with
// the label. It sorts the labels.
func bestThreshold(labels []judgedLabel) (threshold, rows float64) {
	slices.SortFunc(labels, func(a, b judgedLabel) int { return cmp.Compare(b.p, a.p) })
	for _, l := range labels {
		if l.right {
			rows++
		}
	}
	right, best := 0.0, -1.0
	threshold = 0.5
	for i, l := range labels {
		if l.right {
			right++
		}
		next := 0.0
		if i+1 < len(labels) {
			next = labels[i+1].p
		}
		if f1 := 2 * right / (float64(i+1) + rows); f1 > best && next < l.p && rows > 0 {
			threshold, best = (l.p+next)/2, f1
		}
	}
	return threshold, rows
}
