package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
	"github.com/heed-go/heed/train/task/judge"
)

// hidden lists settings of a task that pages leave out: they are only for programs, or contain text from the data.
var hidden = []string{
	"format", "task.alphabet", "task.classes", "task.example", "data.sha256", "data.validation_sha256", "data.tokenizers_sha256", "from.sha256", "from.absolute.dir", "from.absolute.base",
}

// FromTask returns the Run of a task's run folder. The argument t is the folder's content, as read by task.ReadRun.
func FromTask(dir string, t *task.Run) *Run {
	c := t.Config
	settings, _ := flat(c) // no error, because it was read from JSON
	settings = slices.DeleteFunc(settings, func(s row) bool { return slices.Contains(hidden, s.Name) })
	best := kept(t)
	r := &Run{
		Result: &train.Result{History: t.History, Best: best, Unfinished: t.Summary == nil},
		Title:  c.Task.Name, About: learned(t, best),
		Config:   c.Training.Config,
		Settings: settings,
		dir:      dir, task: c.Task.Name, seed: fmt.Sprint(c.Seed), kind: judge.KindOf(&c.Config), stepSeconds: t.Seconds, described: describedRows(&c.Config, "", false),
		solved: c.Solved(),
	}
	if does := c.Describe(); does.Units != "" || does.Generate == nil { // otherwise an answer is one label or number in any units
		r.units = fmt.Sprint(c.Data.SourceUnits, c.Data.TargetUnits)
	}
	if unit := r.kind.LossUnit; unit != "" {
		r.unit = ", " + unit
	}
	if s := t.Summary; s != nil {
		r.linear, r.interval = s.Linear, s.Interval
		r.StoppedEarly, r.StoppedBecause, r.Params, r.Seconds = s.StoppedEarly, s.Because, s.Params, s.Seconds
		r.Trained = s.Trained
	}
	if score, value, ok := textScore(t); ok {
		r.texts = append(r.texts, tile{short(value), "validation " + spoken(score)})
		if b, ok := t.Baseline[score]; ok {
			r.texts = append(r.texts, tile{short(b), spoken(score) + " of " + r.kind.Baseline})
		}
	}
	if c.Data.Tokens > 0 { // a text
		r.unit += " per token"
		if s := t.Summary; s != nil && s.ValLossPerCharacter != nil {
			r.perCharacter = *s.ValLossPerCharacter
		}
	}
	if smoothing := c.Training.LabelSmoothing; smoothing != 0 {
		r.note = fmt.Sprintf("In training only, targets are smoothed by %v. This makes the training loss higher.", smoothing)
	}
	return r
}

// kept returns the best check of a run. If answers are mixed, it has the validation values of the mixture.
func kept(t *task.Run) train.Check {
	best := t.History[t.Best]
	if s := t.Summary; s != nil && s.Linear != nil && s.ValLoss != nil {
		best.ValLoss, best.Metrics = *s.ValLoss, maps.Clone(best.Metrics)
		for name, value := range s.Answers {
			best.Metrics["val_"+name] = value
		}
	}
	return best
}

// textScore returns the score of all validation rows together, if the rows have several texts.
func textScore(t *task.Run) (name string, value float64, known bool) {
	if s := t.Summary; t.Config.Task.Texts > 0 && s != nil && s.ValScore != nil {
		return s.ScoreName, *s.ValScore, true
	}
	return "", 0, false
}

// learned returns the name of the task and the score of the check whose weights are kept, in words.
func learned(t *task.Run, best train.Check) string {
	c, k := &t.Config, judge.KindOf(&t.Config.Config)
	learned := "the task " + c.Task.Name
	if c.Task.About != "" {
		learned += " (" + c.Task.About + ")"
	}
	name, score, known := textScore(t)
	within := ""
	if t.Summary != nil {
		if within = intervalText(t.Summary.Interval, k.Score.Share); within != "" {
			within = " (95 % interval: " + within + ")"
		}
	}
	if !known {
		name = k.Score.Name
		score, known = best.Metrics["val_"+name]
	}
	beside := ""
	b, ok := t.Baseline[name]
	if s := t.Summary; s != nil && s.Linear != nil && *s.Linear == 1 { // the baseline answers
		ok = false
	}
	format := formatOf(k.Score.Share)
	if ok {
		beside = fmt.Sprintf("; %s has %s", k.Baseline, format(b))
	}
	switch {
	case !known || !best.Validated:
	case !k.Score.Share:
		learned += fmt.Sprintf(". The validation %s is %s%s%s", spoken(name), format(score), within, beside)
	default:
		learned += fmt.Sprintf(". %s of the validation %s are %s%s%s", format(score), k.Unit, k.Right, within, beside)
	}
	return learned
}

// intervalText says an interval in words. It returns "" if the interval is unknown.
func intervalText(interval [2]float64, share bool) string {
	if interval == [2]float64{} {
		return ""
	}
	format := formatOf(share)
	return format(interval[0]) + " to " + format(interval[1])
}

// AddAnswers lets the model answer validation examples, and adds to the page: right and wrong answers, a text written
// by the model, a picture of its attention, and a description of the data. The model must have the weights of the run.
// The task has the data. If t is nil, there are no examples and no description. AddAnswers returns an error if ctx ends
// or if the model fails.
func (r *Run) AddAnswers(ctx context.Context, m *model.Model, t *task.Task) error {
	v, described := &answers{Model: m, Private: r.Private}, ""
	if t != nil {
		v.examples, v.Smoothed, described = t.Examples(), smoothed(&t.Config), t.DescribeData()
		r.mostFrequent = t.MostFrequent
	}
	if err := v.judge(ctx); err != nil {
		return err
	}
	if !r.Private {
		if err := v.sample(ctx); err != nil {
			return err
		}
		if !v.explains() {
			if err := v.attend(); err != nil {
				return err
			}
		}
	}
	var html strings.Builder
	if err := templates.ExecuteTemplate(&html, "answers", v); err != nil {
		return err
	}
	r.examples, r.described, r.Params = template.HTML(html.String()), describedRows(m.Config, described, r.Private), cmp.Or(r.Params, m.Params.Count())
	return nil
}

// smoothed says what label smoothing does to confidences, if there is any.
func smoothed(c *task.Config) string {
	smoothing := c.Training.LabelSmoothing
	if smoothing == 0 {
		return ""
	}
	right, product := "the right class", ""
	if c.Describe().Units != "" {
		right, product = "each right symbol", ", the product over its symbols,"
	}
	return fmt.Sprintf("With targets smoothed by %v, training aims at a probability of %s for %s, not 100 %%. So the confidence in an answer%s stays below 100 %% even if the model is always right.",
		smoothing, percent(1-smoothing+smoothing/float64(c.Model.Outputs)), right, product)
}

// sample adds a text written by a text model.
func (v *answers) sample(ctx context.Context) error {
	if v.Config.Describe().Generate != nil {
		return nil
	}
	var s strings.Builder
	_, err := v.Model.Generate(ctx, &s, model.Prompt{Text: v.Config.Task.Example}, model.GenerateOptions{
		Sampler: v.Model.Sampler(), Seed: 1, MaxTokens: 300, Echo: true,
	})
	if errors.As(err, new(*model.InputError)) { // the model knows no symbol of the prompt
		return nil
	}
	v.Sample = text.EscapeExcept(s.String(), "\n\t")
	return err
}

// attend adds a picture of the attention for one input. For the rows of a file, the input is a judged example: if
// possible one with a right answer, and with about 16 symbols. Otherwise it is the task's own example.
func (v *answers) attend() error {
	const symbols = 16
	input := v.Config.Task.Example
	if v.Report != nil && !v.Config.Drawn() {
		input = slices.MinFunc(v.Report.Judged, func(a, b judge.Judged) int {
			far := func(j judge.Judged) int {
				n := max(utf8.RuneCountInString(j.Source)-symbols, symbols-utf8.RuneCountInString(j.Source))
				if !j.Right {
					n += 1 << 20
				}
				return n
			}
			return cmp.Compare(far(a), far(b))
		}).Source
	}
	a, err := v.Model.Attention(input, "")
	if errors.As(err, new(*model.InputError)) { // the model can't answer the input, or the attention has too many weights to show
		return nil
	}
	if err != nil {
		return err
	}
	f := heatmap.Figure{Key: a.Key}
	for _, l := range a.Layers {
		f.Layers = append(f.Layers, heatmap.Layer(l))
	}
	v.Attended = shown(v.apart(a.Input)) + " → " + shown(a.Answer)
	v.Attention, err = f.HTML()
	return err
}

// describedRows returns rows that describe a task's data, from the lines in description, which may be empty. If private
// is true, they have no text from the data and no path.
func describedRows(c *model.Config, description string, private bool) (rows []row) {
	if n := len(c.Task.Classes); n > 0 {
		rows = append(rows, row{"classes", strconv.Itoa(n)})
	}
	if description == "" {
		return rows
	}
	first, rest, _ := strings.Cut(description, "\n")
	rows = append(rows, row{"rows", strings.TrimPrefix(first, c.Data.File+": ")})
	for line := range strings.Lines(rest) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if private && name == "left out" {
			value, _, _ = strings.Cut(value, ": ") // without the bad rows
		}
		value, validation, validated := strings.Cut(value, "; validation: ")
		if name != "columns" || !private { // columns may show the first row
			rows = append(rows, row{name, value})
		}
		if validated {
			if file := c.Data.ValidationFile; private && file != "" {
				validation = strings.TrimSuffix(validation, " of "+file)
			}
			rows = append(rows, row{"validation", validation})
		}
	}
	return rows
}
