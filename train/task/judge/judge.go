package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/train/model"
)

// batch is the number of sources per call of PredictAll.
const batch = 1 << 13

// Answers answers the sources of the examples and compares the model's answers with the examples' answers, the
// references. For seq2seq, if several examples have the same source, each of their answers is right. If the model can't
// answer a source, the empty answer counts, which is wrong. An answer is also wrong if all references have symbols that
// the model doesn't know. Answers returns an error if there are no examples or if the model's kind is text.
//
// For embed, it searches for the positive of each source among the texts of all answers. The texts with the most
// similar vectors come first. If each answer is one text and a score, it compares the similarities with the scores.
func Answers(ctx context.Context, m *model.Model, examples []data.Example, o model.PredictOptions) (*Report, error) {
	kind := kindOf(m.Config.Task.Kind)
	if m.Config.Describe().Rows != nil || len(examples) == 0 {
		return nil, fmt.Errorf("judging needs at least one example and a model that answers rows, got %d examples and a model of kind %s", len(examples), m.Config.Task.Kind)
	}
	if k, ok := kind.scorer.(interface {
		together(ctx context.Context, m *model.Model, r *Report) error
	}); ok {
		r := New(m, examples)
		return r, k.together(ctx, m, r)
	}
	if m.NoLinear != nil {
		return nil, m.NoLinear
	}
	if m.Linear != nil {
		asked := m.Mixture
		if asked.Linear == 0 { // the network alone answers
			asked.Linear = 0.5
		}
		reports, err := mixed(ctx, m, examples, asked, o, m.Mixture, linearAlone)
		if err != nil {
			return nil, err
		}
		reports[0].Beside(m, reports[1])
		return reports[0], nil
	}
	r := New(m, examples)
	for part := range slices.Chunk(r.Judged, batch) {
		answers, err := m.PredictAll(ctx, Sources(part), o)
		if err != nil {
			return nil, err
		}
		r.add(m, part, answers)
	}
	return r, nil
}

// linearAlone lets only the linear model answer.
var linearAlone = logit.Mixture{Linear: 1}

// mixed asks the network and the linear model about the examples once, unless they have the weight 0 in the mixture
// asked. It compares the answers of each other mixture with the examples. The options are for the first of them.
func mixed(ctx context.Context, m *model.Model, examples []data.Example, asked logit.Mixture, o model.PredictOptions, mixtures ...logit.Mixture) ([]*Report, error) {
	reports := make([]*Report, len(mixtures))
	for i := range reports {
		reports[i] = New(m, examples)
	}
	for start := 0; start < len(examples); start += batch {
		end := min(start+batch, len(examples))
		answers, outputs, err := m.Outputs(ctx, Sources(reports[0].Judged[start:end]), asked)
		for i, r := range reports {
			own, options := slices.Clone(answers), o
			if i > 0 {
				options = model.PredictOptions{}
			}
			if err == nil {
				err = m.Mix(own, outputs, mixtures[i], options)
			}
			if err != nil {
				return nil, err
			}
			r.add(m, r.Judged[start:end], own)
		}
	}
	return reports, nil
}

// Sources returns the sources of judged rows.
func Sources(judged []Judged) []string {
	sources := make([]string, len(judged))
	for i, j := range judged {
		sources[i] = j.Source
	}
	return sources
}

// Add adds the model's answers to the examples of a New report.
func (r *Report) Add(m *model.Model, answers []model.Answer) { r.add(m, r.Judged, answers) }

// add sets the answers of a part of the judged rows, and adds them to the report.
func (r *Report) add(m *model.Model, part []Judged, answers []model.Answer) {
	for i := range part {
		part[i].Answer = answers[i]
		r.judge(m, &part[i])
	}
}

// Beside sets what a report says about the model's baseline. The argument is the Baseline on the same examples, or nil.
func (r *Report) Beside(m *model.Model, baseline *Report) {
	if baseline != nil {
		r.about, r.Baseline, r.Chance = m.Linear.About(), baseline.Values(), new(r.kind.chance(r, baseline))
	}
}

// Baseline compares the answers of the baseline alone with the examples. It returns nil if there is no baseline or no
// example. If the run's summary lists a baseline that is missing, this is an error.
func Baseline(ctx context.Context, m *model.Model, examples []data.Example) (*Report, error) {
	if m.Linear == nil || len(examples) == 0 {
		return nil, m.NoLinear
	}
	reports, err := mixed(ctx, m, examples, linearAlone, model.PredictOptions{}, linearAlone)
	return append(reports, nil)[0], err
}

// New returns a report on the examples, without answers.
func New(m *model.Model, examples []data.Example) *Report {
	kind := kindOf(m.Config.Task.Kind)
	kind.Metrics = kind.metrics(m.Config)
	r := &Report{kind: kind}
	if m.Config.Describe().Units != "" {
		r.Units = cmp.Or(m.Config.Data.TargetUnits, tokenizer.Characters)
	}
	if r.Units == tokenizer.Tokens {
		r.BLEU.Split = strings.Fields
	}
	r.gather(examples, m.Config.Task.MaxAnswer > 0)
	return r
}
