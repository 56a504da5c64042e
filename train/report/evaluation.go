package report

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/score"
	"github.com/heed-go/heed/train/task"
)

// An evaluation is the data of the template evaluation.
type evaluation struct {
	Title string
	Lead  string
	Tiles []tile
	answers
}

// Limits for the page of an evaluation.
const (
	listedMistakes = 160 // of all classes together
	listedClasses  = 400
)

// WriteEvaluation writes a page about all answers of a report, such as the answers to a test file: the scores, the
// scores of each class, mistakes of every class and, for models that classify whole inputs, what each word did to a
// listed answer. The model must be the one that made the report. The page's title is the name of the task and name. The
// page contains texts of the data. WriteEvaluation returns an error if ctx ends or if the model fails.
func WriteEvaluation(ctx context.Context, w io.Writer, name string, m *task.Model, r *task.Report) error {
	v := &evaluation{Title: text.EscapeExcept(m.Config.Task.Name+": "+name, ""), answers: answers{Task: &task.Task{Model: m}, whole: true}}
	if err := v.show(ctx, r); err != nil {
		return err
	}
	v.Lead, v.Tiles = scored(m.Scores(nil, r), r)
	return write(w, "evaluation", v.Title, v)
}

// scored returns the sentence below the title of an evaluation, and its tiles.
func scored(s task.Scores, r *task.Report) (lead string, tiles []tile) {
	if s.Right != nil {
		tiles = append(tiles, tile{percent(float64(*s.Right) / float64(s.Total)), spoken(s.Score)})
	} else if s.Value != nil {
		tiles = append(tiles, tile{short(*s.Value), spoken(s.Score)})
	}
	if s.Macro != nil {
		tiles = append(tiles, tile{percent(s.Macro.F1), "macro F1"})
	}
	if s.Entities != nil {
		tiles = append(tiles, tile{percent(s.Entities.F1), "F1 of entities"})
	}
	if b, ok := r.Baseline[s.Score]; ok && s.Right != nil {
		tiles = append(tiles, tile{percent(b), spoken(s.Score) + " of a linear baseline"})
	} else if ok {
		tiles = append(tiles, tile{short(b), spoken(s.Score) + " of a linear baseline"})
	}
	tiles = append(tiles, tile{fmt.Sprint(s.Rows), "rows"})
	_, beyond, found := strings.Cut(strings.TrimSpace(r.String()), "Beyond the model: ")
	if found {
		lead = "Beyond the model: " + beyond
	}
	return lead, tiles
}

// mistakes are wrong answers under a heading.
type mistakes struct {
	Title    string
	Examples []example
}

// byClass divides wrong answers, in their order, by their right class, and returns the classes with the most mistakes
// first.
func byClass(classes []score.ClassScore, wrong []task.Judged) (groups [][]task.Judged, titles []string) {
	found := map[string][]task.Judged{}
	for _, j := range wrong {
		found[j.References[0]] = append(found[j.References[0]], j)
	}
	order := slices.Clone(classes)
	slices.SortStableFunc(order, func(a, b score.ClassScore) int { return len(found[b.Class]) - len(found[a.Class]) })
	for _, c := range order {
		if js := found[c.Class]; js != nil {
			groups = append(groups, js)
			titles = append(titles, fmt.Sprintf("%s: %d of %s wrong", className(c.Class), len(js), text.Count(c.Rows, "row")))
		}
	}
	return groups, titles
}
