package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/layers/pretrained"
)

// labelsHead gives each source any number of labels.
type labelsHead struct{ pooledHead }

func (labelsHead) about() facts {
	return facts{kind: data.KindMultiLabel, use: "predict", rows: true, pairs: true, linear: true, top: unlimited, units: "characters, tokens, words, bpe"}
}

func (labelsHead) published(m *pretrained.Config, r *data.Rule) bool {
	if m.Head != "classes" || !m.Several {
		return false
	}
	r.About, r.Classes, r.Separator = "the labels of a text", m.Labels, "|"
	return true
}

func (h labelsHead) suit(m *pretrained.Config) error {
	m.Several = true
	return h.pooledHead.suit(m)
}

func (labelsHead) describe(_ *Config, d *Description) {
	d.Explain = nil
	label := map[string]any{"type": "string"}
	d.Schema["answer"] = map[string]any{"type": "array", "items": label}
	d.Schema["scores"] = map[string]any{
		"type": "array", "items": map[string]any{
			"type": "object", "properties": map[string]any{"label": label, "score": map[string]any{"type": "number", "minimum": 0, "maximum": 1}},
			"required": []any{"label", "score"},
		},
		"description": "the probability of each label, the likeliest first; the answer has the labels that reach their thresholds",
	}
}

func (labelsHead) network(m *Model) (network, error) {
	net, err := pooled(m) // (B, Classes)
	return labeller{reader{m, net}}, err
}

// A labeller is a network whose output is the logit of each label. Labels don't exclude each other.
type labeller struct{ reader }

func (l labeller) predictor(s batchShape) (predictor, error) {
	return l.chooser(l, s, func(output []float32, q *query) {
		q.output = slices.Clone(output)
		if !q.keep {
			q.choices, q.output = l.mixed(*q, q.mixture), nil
		}
	})
}

func (l labeller) mixed(q query, x logit.Mixture) []choice {
	thresholds := l.thresholdsOf(x)
	c := choice{targets: make([]int, l.layout.Classes), scores: make([]float64, l.layout.Classes)}
	for i, z := range x.Odds(q.output, q.linear) {
		p := logit.Logistic(float64(z))
		if c.scores[i] = p; p >= thresholds[i] {
			c.targets[i] = 1
			c.logProb -= math.Log1p(math.Exp(-float64(z)))
		} else {
			c.logProb -= math.Log1p(math.Exp(float64(z)))
		}
	}
	return []choice{c}
}

// thresholdsOf returns the thresholds for answers that are mixed in this way.
func (l labeller) thresholdsOf(x logit.Mixture) []float64 {
	thresholds := l.Thresholds
	if x != l.Mixture {
		thresholds = nil
	}
	if thresholds == nil && x == (logit.Mixture{Linear: 1}) && l.Linear != nil {
		thresholds = l.Linear.Thresholds
	}
	if thresholds == nil {
		thresholds = slices.Repeat([]float64{0.5}, l.layout.Classes)
	}
	return thresholds
}

func (l labeller) answer(c choice, a *Answer) error {
	a.Labels, a.Scores = []string{}, make([]LabelScore, len(c.scores))
	for i, class := range l.Config.Task.Classes {
		a.Scores[i] = LabelScore{class, c.scores[i], c.targets[i] == 1}
	}
	slices.SortStableFunc(a.Scores, func(a, b LabelScore) int { return cmp.Compare(b.Score, a.Score) })
	for _, s := range a.Scores {
		if s.Chosen {
			a.Labels = append(a.Labels, s.Label)
		}
	}
	a.Text = strings.Join(a.Labels, l.Config.Task.Separator)
	return nil
}

func (l labeller) join(rows []query, o PredictOptions, a *Answer) error {
	c := rows[0].choices[0]
	a.LogProb = c.logProb
	err := l.answer(c, a)
	for _, s := range a.Scores[:min(o.Top, len(a.Scores))] {
		a.Top = append(a.Top, Alternative{Text: s.Label, LogProb: math.Log(s.Score)})
	}
	return err
}

// thresholdsKey is the key of a run's thresholds in the metadata of its weights. Its text is a list in JSON.
const thresholdsKey = "heed.thresholds"

// AddThresholds adds the model's thresholds to the metadata of its weights.
func (m *Model) AddThresholds(metadata map[string]string) {
	if m.Thresholds != nil {
		content, _ := json.Marshal(m.Thresholds) // finite, so there is no error
		metadata[thresholdsKey] = string(content)
	}
}

// readThresholds sets the model's thresholds from the metadata of its weights.
func (m *Model) readThresholds(metadata map[string]string) error {
	content, ok := metadata[thresholdsKey]
	if m.Thresholds = nil; !ok {
		return nil
	}
	err := json.Unmarshal([]byte(content), &m.Thresholds)
	if err != nil || len(m.Thresholds) != len(m.Config.Task.Classes) || slices.ContainsFunc(m.Thresholds, func(p float64) bool { return !(p >= 0 && p <= 1) }) {
		return fmt.Errorf("%s: its %s must be %d numbers from 0 to 1, got %.60q", runfolder.WeightsFile, thresholdsKey, len(m.Config.Task.Classes), content)
	}
	return nil
}
