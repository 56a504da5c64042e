package report

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/judge"
)

// An evaluation is the data of the template evaluation.
type evaluation struct {
	Title string
	Lead  string
	Tiles []tile
	answers
}

// WriteEvaluation writes a page about all answers of a report, such as the answers to a test file: the scores, the
// scores of each class, mistakes of every class and, for models that classify whole inputs, what each word did to a
// listed answer. The model must be the one that made the report. The page's title is the name of the task and name. The
// page contains texts of the data. WriteEvaluation returns an error if ctx ends or if the model fails.
func WriteEvaluation(ctx context.Context, w io.Writer, name string, m *model.Model, r *judge.Report) error {
	v := &evaluation{Title: text.EscapeExcept(m.Config.Task.Name+": "+name, ""), answers: answers{Model: m, whole: true}}
	if err := v.show(ctx, r); err != nil {
		return err
	}
	v.Lead, v.Tiles = scored(judge.ScoresOf(m, nil, r), r, judge.KindOf(m.Config).Baseline)
	return write(w, "evaluation", v.Title, v)
}

// scored returns the sentence below the title of an evaluation, and its tiles.
func scored(s judge.Scores, r *judge.Report, baseline string) (lead string, tiles []tile) {
	if s.Right != nil {
		tiles = append(tiles, tile{percent(float64(*s.Right) / float64(s.Total)), spoken(s.Score)})
	} else if s.Value != nil {
		tiles = append(tiles, tile{short(*s.Value), spoken(s.Score)})
	}
	if within := intervalText(s.Interval, s.Right != nil); within != "" {
		tiles = append(tiles, tile{within, "95 % interval of " + spoken(s.Score)})
	}
	if s.Macro != nil {
		tiles = append(tiles, tile{percent(s.Macro.F1), "macro F1"})
	}
	if s.AveragePrecision != nil {
		tiles = append(tiles, tile{percent(*s.AveragePrecision), "average precision"})
	}
	if s.Entities != nil {
		tiles = append(tiles, tile{percent(s.Entities.F1), "F1 of entities"})
	}
	if b, ok := r.Baseline[s.Score]; ok {
		tiles = append(tiles, tile{formatOf(s.Right != nil)(b), spoken(s.Score) + " of " + baseline})
	}
	tiles = append(tiles, tile{fmt.Sprint(s.Rows), "rows"})
	_, beyond, found := strings.Cut(strings.TrimSpace(r.String()), "Beyond the model: ")
	if found {
		lead = "Beyond the model: " + beyond
	}
	return lead, tiles
}
