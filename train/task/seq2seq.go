package task

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// seq2seq generates an answer symbol by symbol.
type seq2seq struct{ common }

var seq2seqKind = seq2seq{common{Kind{
	Name: data.KindSeq2Seq, About: "the answer to each source in a file, of any length",
	Rows: true, columns: []table.Column{
		{Role: "source", Names: []string{"source", "src", "input", "word", "question"}},
		{Role: "answer", Names: []string{"target", "tgt", "output", "answer", "pronunciation"}},
	},
	Beams: true, Sequences: true, AnswerUnits: true, Unit: "rows", Right: "exactly right", LossUnit: "nats",
	smoothing: 0.1, units: "characters, tokens, words, bpe",
}}}

func (seq2seq) defaults(c *Config) { c.Model.Dim = 64 }

func (seq2seq) network(m *Model) (network, error) {
	net, err := layers.NewEncoderDecoder(m.Params, layers.EncoderDecoderConfig{
		Model: m.Config.Model, TargetVocab: m.layout.TargetTokens, DecoderLayers: m.Config.DecoderLayers,
		Shared: m.Config.Task.Source != nil && m.Config.Task.Target == nil, // one vocabulary
	})
	return translator{newClassifier(m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Forward(b, inputs[0], inputs[2], layers.Mask{KeyLengths: inputs[1]}) // (B, TargetLen, Classes)
	}), net}, err
}

// A translator is the network of seq2seq.
type translator struct {
	classifier
	net *layers.EncoderDecoder
}

// predictor returns a predictor that generates answers. An answer ends before the first special token, or at the
// greatest length of an answer.
func (t translator) predictor(s batchShape) (predictor, error) {
	l := t.layout
	session, err := decode.NewSeq2Seq(t.net, decode.Seq2SeqConfig{Sources: s.size, Width: s.beam, SourceLen: s.width, Capacity: l.TargetLen, Cores: s.cores})
	if err != nil {
		return nil, err
	}
	o := decode.BeamOptions{Width: s.beam, MaxTokens: l.TargetLen, End: []int{l.End, l.TargetPad, l.Start}}
	return func(ctx context.Context, rows []query) error {
		sources, starts := make([][]int, len(rows)), make([][]int, len(rows))
		for i, q := range rows {
			sources[i], starts[i] = q.ids, []int{l.Start}
		}
		if err := session.Read(sources); err != nil {
			return err
		}
		found, err := decode.Beam(ctx, session, starts, o)
		if err != nil {
			return err
		}
		for i := range rows {
			for _, h := range found[i] {
				rows[i].choices = append(rows[i].choices, choice{targets: h.Tokens[:min(len(h.Tokens), l.TargetLen-1)], logProb: h.LogProb})
			}
		}
		return nil
	}, nil
}

// judge adds the edits, chrF and BLEU of an answer.
func (seq2seq) judge(m *Model, r *Report, j *Judged) {
	answer, references := m.compare(r, j)
	before := r.Errors.Edits
	r.Errors.Add(answer, references...)
	j.Edits = r.Errors.Edits - before
	r.ChrF.Add(j.Answer.Text, j.References...)
	r.BLEU.Add(j.Answer.Text, j.References...)
}

func (seq2seq) scores(r *Report, s *Scores) {
	s.share(r.Right, len(r.Judged))
	s.ErrorRate, s.Edits = finite(r.Errors.Value()), &r.Errors.Edits
	s.ChrF, s.BLEU = finite(r.ChrF.Value()), finite(r.BLEU.Value())
}

func (seq2seq) write(r *Report, w io.Writer) {
	n, unit, bleu := len(r.Judged), string(r.Units), fmt.Sprintf("%.2f", r.BLEU.Value())
	if r.Units == tokenizer.BPE {
		unit = "words"
	}
	if r.BLEU.Value() == 0 && !slices.ContainsFunc(r.Judged, func(j Judged) bool { return len(strings.Fields(j.Answer.Text)) >= 4 }) {
		bleu = "none, as no answer has four words" // BLEU counts runs of up to four words
	}
	fmt.Fprintf(w, "Exact: %.4f (%d of %s answered with one of their references)\n", float64(r.Right)/float64(n), r.Right, text.Count(n, "source"))
	fmt.Fprintf(w, "Error rate: %.4f (%d edits; the nearest references have %d %s)\n", r.Errors.Value(), r.Errors.Edits, r.Errors.Units, unit)
	fmt.Fprintf(w, "chrF: %.2f, BLEU: %s\n", r.ChrF.Value(), bleu)
}
