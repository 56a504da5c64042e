package task

import (
	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/table"
)

// seq2seq generates an answer symbol by symbol.
type seq2seq struct{ common }

var seq2seqKind = seq2seq{common{facts{
	name: data.KindSeq2Seq, help: "the answer to each source in a file, of any length",
	format: &rows.Format{AnswerUnits: true, Sequences: true, Columns: []table.Column{
		{Role: "source", Names: []string{"source", "src", "input", "word", "question", "text", "article", "document"}},
		{Role: "answer", Names: []string{"target", "tgt", "output", "answer", "pronunciation", "summary", "translation"}},
	}},
	smoothing: 0.1, rate: 2e-3,
}}}

func (seq2seq) defaults(c *Config) { c.Model.Dim = 64 }
