// Package report makes web pages about training runs: live pages during training, and reports afterwards.
//
// A Run is a training run. Run.Save writes an HTML file with the run's curves, a table of its checks, and its settings.
// Compare writes a page that compares several runs. After your own call of train.Fit, make a Run from the Result:
//
//	result, err := train.Fit(ctx, problem, config, call)
//	...
//	err = (&report.Run{Title: "digits", Result: result, Config: config}).Save("report.html")
//
// For a run folder of package task, FromTask makes the Run. AddAnswers adds the model's answers to validation examples:
//
//	run, err := task.ReadRun(dir)
//	...
//	page := report.FromTask(dir, run)
//	err = page.AddAnswers(ctx, t.Model, t) // t is the task.Task with the run's weights
//	...
//	err = page.Save("report.html")
//
// A Live follows a run while it trains. It gets steps and checks from Fit, and serves a page that grows with the run.
// It also makes a progress line for a terminal:
//
//	live := report.NewLive(problem.Train.Steps(config.BatchSize), config, call)
//	call.OnStep, call.OnCheck = live.Step, live.Check
//	handler, err := live.Handler("digits", "seed 1")
//	...
//	go http.ListenAndServe("localhost:8080", handler)
//	result, err := train.Fit(ctx, problem, config, call)
//	...
//	live.End(result.StoppedBecause)
package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/webpage"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/score"
	"github.com/heed-go/heed/train/task/judge"
)

// A Run describes a training run for a page. Its Result needs at least one check in the History.
type Run struct {
	*train.Result

	Title string
	About string // what was learned, to follow "A model of 1234 parameters learned"; may be empty

	// Config is the configuration of Fit. If its CheckEvery is above 0, the curves count steps, otherwise epochs. Its
	// Stopping says whether the best or the last parameters were kept.
	Config train.Config

	// Settings is the configuration to show: a struct, a map or another value that JSON can represent. Each object in
	// it becomes a table. The object named data becomes the table under "What it learned from". If Settings is nil,
	// the page shows the Config. If its solver can't go to JSON, the page shows the name of the solver's type.
	Settings any

	Params  int     // number of parameters of the model; 0 if unknown
	Trained int     // number of parameters that training changed; 0 if all
	Seconds float64 // duration of training; 0 if unknown
	Missing string  // the reason why the page has no answers of the model; may be empty

	// Private leaves out the paths of a task's data files and of other run folders, and all text from the data except
	// the names of classes. Set it before AddAnswers.
	Private bool

	dir          string        // run folder of a task; empty if there is none
	task, seed   string        // of a task; empty if there is none
	kind         judge.Kind    // of a task; zero if there is none
	texts        []tile        // scores of a task whose rows have several texts; nil for other tasks
	unit         string        // unit of losses, after a comma; empty if there is none
	linear       *float64      // weight of the linear model in a task's answers: see task.Summary
	interval     [2]float64    // of a task's score: see task.Summary
	solved       bool          // the head was fitted without epochs, so there are no curves
	units        string        // units of a task's data, if answers are split into units
	note         string        // text below the charts
	perCharacter float64       // validation loss of a text in tokens; 0 if unknown
	stepSeconds  []float64     // mean time per step before each check, 0 if unknown; nil if there are no times
	described    []row         // description of a task's data, to follow the settings of the data
	examples     template.HTML // part of the page made by AddAnswers

	mostFrequent func(metric string) (label string, value float64, known bool) // see task.Task; nil before AddAnswers
}

// A view is the data of the template run.
type view struct {
	Title    string
	Lead     []string
	Tiles    []tile
	Charts   []chart
	Note     string
	Checks   table
	Answers  template.HTML
	Missing  string
	Data     []row
	Settings []group
}

//go:embed report.html
var markup string

//go:embed report.css
var style string

//go:embed report.js
var script string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"line": func(s string) string { return units.ReplaceAllString(text.EscapeExcept(s, ""), "$1\u00a0$2") },
	"scores": func(what, counted string, scores []score.ClassScore) scoreTable {
		return scoreTable{what, counted, scores}
	},
	"percent": func(share float64) string { return units.ReplaceAllString(percent(share), "$1\u00a0$2") },
}).Parse(markup))

// A scoreTable is the data of the template scores.
type scoreTable struct {
	What, Counted string // headings of the classes, and of their Rows
	Scores        []score.ClassScore
}

// units matches a number, a space and its unit, which must not be on different lines of a page.
var units = regexp.MustCompile(`(\d) (%|(?:s|min|h|thousand|million)\b)`)

// Save writes the page of Write to a file. If it returns an error, it leaves the path as it was.
func (r *Run) Save(path string) error { return atomicfile.WriteFile(path, r.Write) }

// Write writes a page about the run. It returns an error, and writes nothing, if the run has no check, or if JSON can't
// represent the Settings.
func (r *Run) Write(w io.Writer) error {
	settings, err := r.settings()
	if err != nil {
		return err
	}
	v := &view{
		Note: r.note, Answers: r.examples, Missing: r.Missing,
		Data: append(dataRows(settings, r.described), r.described...), Settings: groups(settings),
	}
	v.Title, v.Lead, v.Tiles = r.headline()
	scripts := []string{script, heatmap.Script}
	if r.solved {
		scripts = scripts[1:]
	} else {
		v.Charts, v.Checks = r.charts(), r.checks()
	}
	return write(w, "run", v.Title, v, scripts...)
}

// bySteps reports whether checks are numbered by steps. Otherwise they are numbered by epochs.
func (r *Run) bySteps() bool { return r.Config.CheckEvery > 0 }

// when returns the time of a check in words, such as "epoch 3".
func (r *Run) when(c train.Check) string {
	return fmt.Sprint(axis(r.bySteps()), " ", place(c, r.bySteps()))
}

// answers returns the check with the values of the run's answers: the check whose parameters were kept or, if answers
// are mixed with those of a linear model, that check with the values of the mixture.
func (r *Run) answers() train.Check {
	if r.linear != nil {
		return r.Best
	}
	return r.History[r.best()]
}

// best returns the index of the check whose parameters were kept.
func (r *Run) best() int {
	i := slices.IndexFunc(r.History, func(c train.Check) bool { return c.Step == r.Best.Step })
	if i < 0 {
		i = len(r.History) - 1
	}
	return i
}

// write writes a page. Its body is the named template, applied to data. Only a page with scripts may have charts.
func write(w io.Writer, name, title string, data any, scripts ...string) error {
	var body strings.Builder
	if err := templates.ExecuteTemplate(&body, name, data); err != nil {
		return err
	}
	return webpage.Page{
		Title: title, Body: template.HTML(body.String()), Style: style + heatmap.Style, Charts: scripts != nil, Scripts: scripts,
	}.Write(w)
}

// name returns the name of the run's folder or, if there is no folder, the title.
func (r *Run) name() string {
	if r.dir == "" {
		return text.EscapeExcept(r.Title, "")
	}
	dir := r.dir
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return text.EscapeExcept(filepath.Base(dir), "")
}

// scoreName returns the name of the metric that says how good the model is.
func (r *Run) scoreName() string { return cmp.Or(r.kind.Score.Name, "accuracy") }

// scored returns a check's validation score as text, and whether there is one. A share of right answers is in percent.
func (r *Run) scored(c train.Check) (value string, known bool) {
	score, known := c.Metrics["val_"+r.scoreName()]
	return formatOf(r.kind.Score.Name == "" || r.kind.Score.Share)(score), known && c.Validated
}

// A tile is a number in a box at the top of the page.
type tile struct{ Value, What string }

// headline returns the title of the page, the sentences below it, and the tiles.
func (r *Run) headline() (title string, lead []string, tiles []tile) {
	best, last := r.answers(), r.History[len(r.History)-1]
	var learned string
	if r.Params > 0 {
		learned += " of " + count(r.Params) + " parameters"
		if r.Trained > 0 {
			learned += ", with " + count(r.Trained) + " trained,"
		}
	}
	if r.About != "" {
		learned += " learned " + r.About
	}
	if learned != "" {
		lead = append(lead, "A model"+learned+".")
	}
	tiles = slices.Concat(r.texts, r.scoreTiles(best))
	if best.Validated {
		tiles = append(tiles, tile{short(best.ValLoss), "validation loss" + r.unit})
		if r.perCharacter > 0 {
			tiles = append(tiles, tile{short(r.perCharacter), "validation loss, nats per character"})
		}
	}
	tiles = append(tiles, tile{short(best.TrainLoss), "training loss" + r.unit})
	when, weights, check := r.when(best), "The weights", "best"
	if r.linear != nil {
		weights = "The network's weights"
	}
	if r.Config.Stopping.KeepLast {
		check = "last"
	}
	kept := fmt.Sprintf("%s are from the %s check, %s.", weights, check, when)
	if !r.solved {
		n, epochs, _ := strings.Cut(text.Count(last.Epoch+1, "epoch"), " ")
		tiles = append(tiles, tile{n, epochs})
		if !r.onlyLinear() {
			tiles = append(tiles, tile{when, "weights kept from"})
		}
	}
	switch {
	case r.solved && r.linear != nil:
		lead = append(lead, "A linear model answers. It reads words, characters and the vectors of the model that the run began from, and is solved without epochs.")
	case r.solved:
		lead = append(lead, "The head is a linear model of the vectors of the model that the run began from. It is solved without epochs.")
	case r.Unfinished:
		lead = append(lead, fmt.Sprintf("The run isn't finished. It has taken %d steps. %s", last.Step, kept))
	default:
		lead = append(lead, fmt.Sprintf("Training stopped because %s. %s", r.StoppedBecause, kept))
	}
	if decay := r.Config.Optimizer.Average; decay > 0 && !r.solved {
		lead[len(lead)-1] += fmt.Sprintf(" They are averages of the weights after each step, with a decay of %v. Validation scores belong to the averages, and training losses and metrics to the weights of their steps.", decay)
	}
	if r.linear != nil && !r.solved {
		lead[len(lead)-1] += r.mixed(r.History[r.best()])
	}
	if r.Seconds > 0 {
		tiles = append(tiles, tile{text.Seconds(r.Seconds), "last training took"})
	}
	if title = text.EscapeExcept(r.Title, ""); r.name() != title {
		title += ": " + r.name()
	}
	return title, lead, tiles
}

// onlyLinear reports whether the linear model answers alone.
func (r *Run) onlyLinear() bool { return r.linear != nil && *r.linear == 1 }

// mixed says how a network and a linear model answer together.
func (r *Run) mixed(network train.Check) string {
	s := " The linear model answers alone: on the validation rows, the network adds nothing."
	if !r.onlyLinear() {
		s = fmt.Sprintf(" Answers are mixed: the linear model has the weight %.2f and the network %.2f.", *r.linear, 1-*r.linear)
	}
	if alone, known := r.scored(network); known {
		s += fmt.Sprintf(" The network alone has a validation %s of %s.", spoken(r.scoreName()), alone)
	}
	return s + " The charts show the network alone."
}

// scoreTiles returns the tiles of a check's monitored metric, if it isn't the score, and of its score. Beside each is
// the value of always answering the most frequent label.
func (r *Run) scoreTiles(c train.Check) (tiles []tile) {
	add := func(name, value string) {
		tiles = append(tiles, tile{value, "validation " + spoken(name)})
		if r.mostFrequent == nil {
			return
		}
		if label, value, known := r.mostFrequent(name); known {
			tiles = append(tiles, tile{percent(value), spoken(name) + " of always answering " + text.Label(label)})
		}
	}
	name, ok := strings.CutPrefix(r.Config.Stopping.Monitor, "val_")
	if x, known := c.Metrics["val_"+name]; ok && known && name != r.scoreName() && c.Validated {
		add(name, formatOf(r.kind.Right != "")(x))
	}
	if value, known := r.scored(c); known {
		add(r.scoreName(), value)
	}
	return tiles
}

// formatOf returns the function that formats values of a metric: percent if they are shares.
func formatOf(share bool) func(value float64) string {
	if share {
		return percent
	}
	return short
}

// percent formats a fraction in percent, with more digits near 0 and 1.
func percent(share float64) string {
	if share == 0 || share == 1 {
		return fmt.Sprintf("%.0f %%", 100*share)
	}
	if share > 0.9995 && share < 1 || share < 0.0005 && share > 0 {
		return fmt.Sprintf("%.2f %%", 100*share)
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// short formats a number with four significant digits.
func short(x float64) string { return fmt.Sprintf("%.4g", x) }

// count formats a number with words, such as 12 thousand.
func count(n int) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f million", float64(n)/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.0f thousand", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// spoken returns a metric's name in words: macro_f1 becomes macro F1, and recall[spam] becomes recall of spam.
func spoken(name string) string {
	name, class, ofClass := strings.Cut(name, "[")
	name = strings.ReplaceAll(" "+text.EscapeExcept(strings.ReplaceAll(name, "_", " "), ""), " f1", " F1")[1:]
	switch {
	case ofClass:
		name += " of " + text.Label(strings.TrimSuffix(class, "]"))
	case name == "r2":
		return "R²"
	case name == "mrr":
		return "mean reciprocal rank"
	case name == "spearman":
		return "Spearman correlation"
	}
	return name
}
