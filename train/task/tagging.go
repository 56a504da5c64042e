package task

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers"
)

// tagging gives each symbol of a source one tag.
type tagging struct{ common }

var taggingKind = tagging{common{Kind{
	Name: data.KindTagging, About: "the tag of each token in a file",
	Columns: []Column{
		{Role: "token list", Names: []string{"tokens", "words", "text", "sentence", "source"}},
		{Role: "tag list", Names: []string{"tags", "labels", "ner_tags", "pos_tags", "target"}},
	},
	Classes: true, AnswerUnits: true, Unit: "tags", Right: "right",
	aligned: true, units: "characters, tokens", usual: tokenizer.Tokens, // no byte pairs: only a part of a word would have the tag
}}}

// tagged reports whether rows of a file are tokens with their tags, so that the file may be CoNLL.
func (c *Config) tagged() bool {
	return c.fromRows() && kindOf(c.Task.Kind).about().aligned && c.Data.SourceUnits != tokenizer.Characters && c.Data.TargetUnits != tokenizer.Characters
}

// checkTags returns an error if a row doesn't have one tag per symbol.
func (c *Config) checkTags(fields []string) error {
	count := func(units tokenizer.Units, field string) int {
		if units == tokenizer.Characters {
			return utf8.RuneCountInString(field)
		}
		return len(strings.Fields(field))
	}
	if symbols, tags := count(c.Data.SourceUnits, fields[0]), count(c.Data.TargetUnits, fields[1]); symbols != tags {
		return fmt.Errorf("the source has %d symbols and %d tags: each symbol needs one tag", symbols, tags)
	}
	return nil
}

func (tagging) network(m *Model) (forward, error) {
	net, err := layers.NewEncoder(m.Params, m.Config.Model)
	return func(b *layers.Build, in G.Nodes) (*G.Node, error) {
		return net.Forward(b, in[0], layers.Mask{KeyLengths: in[1]}) // (B, Len, Classes)
	}, err
}

// score also counts entities.
func (k tagging) score(r *Report, j *Judged, answer []string, references [][]string) {
	k.common.score(r, j, answer, references)
	r.Entities.Add(answer, references[0])
}

func (k tagging) write(r *Report, w io.Writer) {
	n := len(r.Judged)
	fmt.Fprintf(w, "Rows: %.4f (%d of %d rows with every tag right)\n", float64(r.Right)/float64(n), r.Right, n)
	k.common.write(r, w)
	if !r.HasEntities() {
		return
	}
	total := r.Entities.Total()
	fmt.Fprintf(w, "Entity F1: %.4f (%d right of %d answered and %d in the rows)\n", total.F1, total.Right, total.Answers, total.Rows)
	types := r.Entities.Types()
	total.Class = "all"
	writeScores(w, append(types[:min(len(types), mostClasses)], total))
}
