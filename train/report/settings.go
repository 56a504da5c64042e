package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// A row is a name and its value.
type row struct{ Name, Value string }

// A group is a table of settings, such as the settings of the model.
type group struct {
	Title string
	Rows  []row
}

// settings returns the Settings, by their names in JSON, such as model.dim. It returns an error if the run has no check
// or if JSON can't represent the Settings.
func (r *Run) settings() ([]row, error) {
	if r.Result == nil || len(r.History) == 0 {
		return nil, errors.New("report: a run must have a Result with at least one check, got none")
	}
	if rows, ok := r.Settings.([]row); ok { // made by FromTask
		if r.Private {
			rows = slices.DeleteFunc(slices.Clone(rows), func(s row) bool { return slices.Contains(paths, s.Name) })
		}
		return rows, nil
	}
	rows, err := flat(r.Settings)
	if r.Settings == nil {
		rows, err = configRows(r.Config)
	}
	if err != nil {
		return nil, fmt.Errorf("report: the Settings: %w", err)
	}
	return rows, nil
}

// configRows returns the settings of a Config. If the solver can't go to JSON, its kind is the name of its type.
func configRows(c train.Config) ([]row, error) {
	rows, err := flat(c)
	rule := c.Optimizer.Solver
	if err == nil || rule == nil {
		return rows, err
	}
	c.Optimizer.Solver = optim.AdamW{} // its only setting is its kind
	rows, err = flat(c)
	for i := range rows {
		if rows[i].Name == "optimizer.solver.kind" {
			rows[i].Value = fmt.Sprintf("%T", rule)
		}
	}
	return rows, err
}

// unnamed has words for settings whose own name doesn't say what they set.
var unnamed = map[string]string{
	"model.dropout":        "dropout of the embeddings",
	"block.dropout":        "dropout of the sub-layers' outputs",
	"attention.dropout":    "dropout of the attention weights",
	"feed_forward.dropout": "dropout of the hidden units",
}

// zeros has words for the value 0 of settings in which 0 isn't an amount.
var zeros = map[string]string{
	"max_epochs": "no limit", "stopping.patience": "no early stopping", "data.validation": "none",
	"optimizer.weight_decay": "none", "schedule.warm_up": "none", "schedule.decay": "none",
}

// known returns the text for the setting with this name. The keys of texts are ends of names.
func known(texts map[string]string, name string) (string, bool) {
	for end, text := range texts {
		if name == end || strings.HasSuffix(name, "."+end) {
			return text, true
		}
	}
	return "", false
}

// flat returns the values in v by their names in JSON, such as model.dim.
func flat(v any) ([]row, error) {
	content, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var rows []row
	flatten(json.NewDecoder(bytes.NewReader(content)), "", &rows)
	for i, r := range rows {
		if meaning, ok := known(zeros, r.Name); ok && r.Value == "0" {
			rows[i].Value = meaning
		}
	}
	return rows, nil
}

// flatten reads a JSON value and appends its values to rows, in their order.
func flatten(d *json.Decoder, name string, rows *[]row) {
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return
	}
	switch token {
	case json.Delim('{'):
		for d.More() {
			key, _ := d.Token()
			flatten(d, strings.TrimPrefix(fmt.Sprintf("%s.%v", name, key), "."), rows)
		}
		d.Token()
	case json.Delim('['):
		var parts []row
		for d.More() {
			flatten(d, name, &parts)
		}
		d.Token()
		var values []string
		for _, p := range parts {
			values = append(values, p.Value)
		}
		if values != nil {
			*rows = append(*rows, row{name, strings.Join(values, ", ")})
		}
	case nil:
	default:
		*rows = append(*rows, row{name, fmt.Sprint(token)})
	}
}

// groups returns the settings as tables: first the settings without a part, then a table for each part of the
// configuration.
func groups(settings []row) []group {
	tables := []group{{Title: "Run"}}
	for _, r := range settings {
		part, rest, nested := strings.Cut(r.Name, ".")
		title := capital(part)
		switch {
		case part == "data" && nested: // shown in another table
			continue
		case part == "task":
			title, tables[0].Title = "Task", "Task"
		case part == "decoder_layers":
			title = "Model"
		case part == "from" || !nested:
			title = tables[0].Title
		}
		if !nested || part == "from" {
			rest = r.Name
		}
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "block."), "optimizer.")
		i := slices.IndexFunc(tables, func(g group) bool { return g.Title == title })
		if i < 0 {
			i, tables = len(tables), append(tables, group{Title: title})
		}
		tables[i].Rows = append(tables[i].Rows, row{words(r.Name, rest), r.Value})
	}
	return slices.DeleteFunc(tables, func(g group) bool { return g.Rows == nil })
}

// words returns the end of a setting's name in words: batch_size becomes batch size.
func words(name, end string) string {
	if phrase, ok := known(unnamed, name); ok {
		return phrase
	}
	return strings.NewReplacer(".", " ", "_", " ").Replace(end)
}

// dataRows returns the settings in the part data that aren't in described.
func dataRows(settings, described []row) []row {
	var rows []row
	for _, s := range settings {
		rest, ok := strings.CutPrefix(s.Name, "data.")
		if ok && !slices.ContainsFunc(described, func(r row) bool { return r.Name == rest }) {
			rows = append(rows, row{words(s.Name, rest), s.Value})
		}
	}
	return rows
}

// paths lists settings of a task that private pages leave out.
var paths = []string{"data.file", "data.more_files", "data.target_file", "data.validation_file", "data.validation_target_file", "from.dir", "from.base"}
