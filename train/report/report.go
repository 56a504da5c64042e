// Package report makes the page of a run: how training went, what was learned of what, and what the model makes of
// examples that it was validated on. It also makes a page that compares runs, and a live page of a run that goes on.
package report

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/webpage"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train/task"
)

// A Run is what a report is made of.
type Run struct {
	Dir string
	*task.Run

	Model    *task.Model    // with the weights that the run kept; nil where there is none
	Examples []data.Example // that the run was validated on; none of text
	Look     *task.Look     // at the file that was learned; nil for none
	Missing  string         // why there are no Examples, if there might be
	Private  bool           // nothing of the data's text is to be in the page, but names of classes
}

// view is what the template of a run's page shows.
type view struct {
	*Run
	Title     string
	Lead      []string
	Tiles     []tile
	Charts    []chart
	Checks    table
	Settings  []group
	Data      []row
	Report    *task.Report
	Some      bool // the Report isn't of all Examples
	Wrong     []example
	Right     []example
	Confusion *confusion
	Lengths   []length
	Sample    string

	Attended  string        // an input and its answer
	Attention template.HTML // while the model answers it; empty for none
}

//go:embed report.html
var markup string

//go:embed report.css
var style string

//go:embed report.js
var script string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"text":    text.Escape,
	"line":    func(s string) string { return text.EscapeExcept(s, "") },
	"percent": percent,
}).Parse(markup))

// Write writes the page of a run.
func (r *Run) Write(ctx context.Context, w io.Writer) error {
	v := &view{Run: r, Charts: r.charts(), Checks: r.checks(), Settings: settings(r.Config), Data: r.data()}
	v.Title, v.Lead, v.Tiles = r.headline()
	if err := v.judge(ctx); err != nil {
		return err
	}
	if !r.Private && r.Model != nil {
		if err := v.sample(ctx); err != nil {
			return err
		}
		if err := v.attend(); err != nil {
			return err
		}
	}
	return write(w, "run", v.Title, v)
}

// write writes a page whose body is a template of data.
func write(w io.Writer, name, title string, data any) error {
	var body strings.Builder
	if err := templates.ExecuteTemplate(&body, name, data); err != nil {
		return err
	}
	return webpage.Page{
		Title: title, Body: template.HTML(body.String()), Style: style + heatmap.Style, Charts: true, Scripts: []string{script, heatmap.Script},
	}.Write(w)
}

// name returns what a run's folder is called.
func name(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return text.EscapeExcept(filepath.Base(dir), "")
}

// A tile is a number that stands out.
type tile struct{ Value, What string }

// headline returns the page's title, what there is to say in some sentences, and the numbers that stand out.
func (r *Run) headline() (title string, lead []string, tiles []tile) {
	c, best, last := &r.Config, r.History[r.Best], r.History[len(r.History)-1]
	right := "of the sequences that it was validated on come out right in full"
	switch {
	case c.Task.Kind == data.KindText && c.Task.Source != nil:
		right = "of the tokens that it was validated on are the ones that it finds likeliest"
	case c.Task.Kind == data.KindText:
		right = "of the characters that it was validated on are the ones that it finds likeliest"
	case c.Data.File == "":
	case c.Task.Kind == data.KindTagging:
		right = "of the tags that it was validated on are right"
	case c.Task.Kind == data.KindClassification:
		right = "of the texts that it was validated on get the right label"
	default:
		right = "of the rows that it was validated on are answered exactly right"
	}
	what := "A model"
	if r.Summary != nil {
		what += " of " + count(r.Summary.Params) + " parameters"
	} else if r.Model != nil {
		what += " of " + count(r.Model.Params.Count()) + " parameters"
	}
	learned := what + " learned the task " + c.Task.Name
	if c.Task.About != "" {
		learned += " (" + c.Task.About + ")"
	}
	accuracy, known := best.Metrics["val_accuracy"]
	if known && best.Validated {
		learned += fmt.Sprintf(". %s %s", percent(accuracy), right)
		tiles = append(tiles, tile{percent(accuracy), "validation accuracy"})
	}
	lead = append(lead, learned+".")
	if best.Validated {
		tiles = append(tiles, tile{short(best.ValLoss), "validation loss, nats"})
	}
	tiles = append(tiles, tile{short(best.TrainLoss), "training loss, nats"})
	at := fmt.Sprintf("epoch %d", best.Epoch)
	if c.Training.CheckEvery > 0 {
		at = fmt.Sprintf("step %d", best.Step)
	}
	kept := "the best, " + at
	if c.Training.Stopping.KeepLast {
		kept = "the last, " + at
	}
	n, epochs, _ := strings.Cut(text.Count(last.Epoch+1, "epoch"), " ")
	tiles = append(tiles, tile{n, epochs}, tile{at, "weights kept from"})
	if s := r.Summary; s != nil {
		lead = append(lead, fmt.Sprintf("Training stopped because %s. The weights are those of %s.", s.Because, kept))
		tiles = append(tiles, tile{text.Seconds(s.Seconds), "last training took"})
	} else {
		lead = append(lead, fmt.Sprintf("The run isn't finished: this is how far it has come, after %d steps. The weights are those of %s.", last.Step, kept))
	}
	if title = c.Task.Name; name(r.Dir) != title {
		title += ": " + name(r.Dir)
	}
	return title, lead, tiles
}

// sample adds what a text model writes.
func (v *view) sample(ctx context.Context) error {
	if v.Config.Task.Kind != data.KindText {
		return nil
	}
	var s strings.Builder
	err := v.Model.Generate(ctx, &s, v.Config.Task.Example, decode.Options{
		Sampler: decode.Sampler{Temperature: 0.8}, Seed: 1, MaxTokens: 300,
	})
	if errors.As(err, new(*task.InputError)) { // nothing is known of what the text begins with
		return nil
	}
	v.Sample = text.EscapeExcept(s.String(), "\n\t")
	return err
}

// attend adds whom the model attends to while it answers the task's own example or, of a file's rows, a judged one: a
// right one of about so many symbols, if there is one.
func (v *view) attend() error {
	const symbols = 16
	input := v.Config.Task.Example
	if v.Report != nil && v.Config.Data.File != "" {
		input = slices.MinFunc(v.Report.Judged, func(a, b task.Judged) int {
			far := func(j task.Judged) int {
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
	if errors.As(err, new(*task.InputError)) { // it can't be answered, or has too many weights to show
		return nil
	}
	if err != nil {
		return err
	}
	f := heatmap.Figure{Key: a.Key}
	for _, l := range a.Layers {
		f.Layers = append(f.Layers, heatmap.Layer(l))
	}
	v.Attended = shown(a.Input) + " → " + shown(a.Answer)
	v.Attention, err = f.HTML()
	return err
}

// percent returns a share as a reader wants it.
func percent(share float64) string {
	if share == 0 || share == 1 {
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	if share > 0.9995 && share < 1 || share < 0.0005 && share > 0 {
		return fmt.Sprintf("%.2f %%", 100*share)
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// short returns a number with four significant digits.
func short(x float64) string { return fmt.Sprintf("%.4g", x) }

// count returns a number of parameters in words.
func count(n int) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f million", float64(n)/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.0f thousand", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
