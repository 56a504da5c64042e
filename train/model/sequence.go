package model

import (
	"context"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/layers/pretrained"
)

// sequenceHead writes answers symbol by symbol.
type sequenceHead struct{ bare }

func (sequenceHead) about() facts {
	return facts{kind: data.KindSeq2Seq, use: "predict", rows: true, decoder: true, top: MaxBeam, units: "characters, tokens, words, bpe", answers: "characters, tokens, bpe"}
}

func (sequenceHead) suit(*pretrained.Config) error {
	return fmt.Errorf("a task of kind %s can't start from a published model", data.KindSeq2Seq)
}

func (sequenceHead) network(m *Model) (network, error) {
	config, shared := m.Config.Model, m.Config.Task.Source != nil && m.Config.Task.Target == nil // one vocabulary
	config.Tied = config.Tied || shared
	net, err := layers.NewEncoderDecoder(m.Params, layers.EncoderDecoderConfig{
		Model: config, TargetVocab: m.layout.TargetTokens, DecoderLayers: m.Config.DecoderLayers, Shared: shared,
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
