package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/train/task"
)

// A row is a name and what belongs to it.
type row struct{ Name, Value string }

// A group is some settings, such as those of the model.
type group struct {
	Title string
	Rows  []row
}

// left are the settings that a report doesn't show: what only programs read, and what the data's text is in.
var left = []string{
	"format", "task.alphabet", "task.classes", "task.example", "data.sha256", "data.validation_sha256", "data.tokenizers_sha256", "from.sha256",
}

// flat returns the settings of a configuration by their names in config.json, such as model.dim.
func flat(c task.Config) []row {
	content, err := json.Marshal(c)
	if err != nil {
		return nil
	}
	var rows []row
	flatten(json.NewDecoder(bytes.NewReader(content)), "", &rows)
	return slices.DeleteFunc(rows, func(r row) bool { return slices.Contains(left, r.Name) })
}

// flatten reads a JSON value and adds what is in it, in its order.
func flatten(d *json.Decoder, name string, to *[]row) {
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return
	}
	switch token {
	case json.Delim('{'):
		for d.More() {
			key, _ := d.Token()
			flatten(d, strings.TrimPrefix(fmt.Sprintf("%s.%v", name, key), "."), to)
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
			*to = append(*to, row{name, strings.Join(values, ", ")})
		}
	case nil:
	default:
		*to = append(*to, row{name, fmt.Sprint(token)})
	}
}

// settings returns a configuration as tables.
func settings(c task.Config) []group {
	groups := []group{{Title: "Task"}, {Title: "Model"}, {Title: "Training"}}
	for _, r := range flat(c) {
		part, rest, nested := strings.Cut(r.Name, ".")
		at := slices.IndexFunc(groups, func(g group) bool { return strings.ToLower(g.Title) == part })
		switch {
		case part == "data": // which has a table of its own
			continue
		case part == "decoder_layers":
			at = 1
		case at < 0:
			at = 0
		}
		if !nested || part == "from" {
			rest = r.Name
		}
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "block."), "optimizer.")
		groups[at].Rows = append(groups[at].Rows, row{strings.NewReplacer(".", " ", "_", " ").Replace(rest), r.Value})
	}
	return groups
}

// data returns what there is to say of the data.
func (r *Run) data() []row {
	var rows []row
	for _, s := range flat(r.Config) {
		if rest, ok := strings.CutPrefix(s.Name, "data."); ok && !(rest == "validation" && r.Look != nil) {
			rows = append(rows, row{strings.ReplaceAll(rest, "_", " "), s.Value})
		}
	}
	if n := len(r.Config.Task.Classes); n > 0 {
		rows = append(rows, row{"classes", strconv.Itoa(n)})
	}
	l := r.Look
	if l == nil {
		return rows
	}
	side := func(s task.Side) string {
		return fmt.Sprintf("%s, %d different; up to %d in a row, half of the rows up to %d", s.Units, s.Symbols, s.Longest, s.Median)
	}
	rows = append(rows,
		row{"rows", fmt.Sprintf("%d, of %d sources", l.Rows, l.Sources)},
		row{"to train on", fmt.Sprintf("%d rows", l.Trains)}, row{"to validate on", fmt.Sprintf("%d rows", l.Validates)},
		row{"sources", side(l.Source)})
	if l.Answer.Symbols > 0 {
		rows = append(rows, row{"answers", side(l.Answer)})
	}
	for _, n := range []struct {
		name string
		n    int
	}{
		{"sources with several answers", l.Several}, {"repeated rows", l.Duplicates}, {"bad rows, left out", l.Bads}, {"rows too long, left out or cut", l.Long},
		{"sources with unknown symbols", l.Source.Unknown}, {"answers with what is unknown", l.Answer.Unknown},
	} {
		if n.n > 0 {
			rows = append(rows, row{n.name, strconv.Itoa(n.n)})
		}
	}
	if l.Labels != nil {
		var parts []string
		for _, c := range l.Labels[:min(len(l.Labels), 12)] {
			parts = append(parts, fmt.Sprintf("%s %d", c.Label, c.N))
		}
		if n := len(l.Labels) - len(parts); n > 0 {
			parts = append(parts, fmt.Sprintf("and %d more", n))
		}
		rows = append(rows, row{"rows by class", strings.Join(parts, ", ")},
			row{"always the commonest", percent(l.Always) + " right"})
	}
	return rows
}
