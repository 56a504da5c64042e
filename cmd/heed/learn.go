package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// labelled is a batch of a model that labels every position.
func labelled(b data.Batch, err error) (batch, error) {
	return batch{size: b.Size, inputs: [][]int{b.Inputs, b.Lengths}, targets: b.Targets, counted: b.Counted()}, err
}

// learnLabels sets up a task whose answers are no longer than its sources: an encoder labels every position of the source
// with a symbol of the answer.
func (e *experiment) learnLabels(withData bool) error {
	task, err := data.Named(e.Task, e.MaxLen)
	if err != nil {
		return &usageError{err}
	}
	labeler, err := data.NewLabeler(task)
	if err != nil {
		return err
	}
	model, err := e.model(labeler.Tokens(), labeler.Len(), labeler.Labels())
	if err != nil {
		return err
	}
	encoder, err := layers.NewEncoder(e.params, model)
	if err != nil {
		return err
	}
	e.len = labeler.Len()
	e.inputs = []input{{"ids", e.len}, {"lengths", 0}}
	e.sequences = true
	e.example = "gorgonia"[:min(8, task.MaxLen)]
	if e.Task == "add" {
		e.example = "27+35"
	}
	e.logits = func(b *layers.Build, in G.Nodes) (*G.Node, error) {
		return encoder.Forward(b, in[0], layers.Mask{KeyLengths: in[1]})
	}
	e.predict = func(input string) (string, error) {
		b, err := labeler.Batch([]string{input}, 1)
		if err != nil {
			return "", &usageError{err}
		}
		label, err := e.labeler(e.inputs)
		if err != nil {
			return "", err
		}
		labels, err := label(b.Inputs, b.Lengths)
		if err != nil {
			return "", err
		}
		return labeler.Answer(labels[:b.Lengths[0]])
	}
	if !withData {
		return nil
	}
	return e.split(task, func(sources []string, size int) (batch, error) { return labelled(labeler.Batch(sources, size)) })
}

// learnPairs sets up a task of sources and answers of any lengths: an encoder reads the source, a decoder writes the
// answer.
func (e *experiment) learnPairs(withData bool) error {
	task, err := data.Named(e.Task, e.MaxLen)
	if err != nil {
		return &usageError{err}
	}
	tr, err := data.NewTranslator(task)
	if err != nil {
		return err
	}
	model, err := e.model(tr.Tokens(), max(tr.SourceLen(), tr.TargetLen()), 0)
	if err != nil {
		return err
	}
	// Distances, not places: few sources are as long as the longest, and a row for each of the last positions would hardly be
	// trained.
	model.Positions = layers.Rotary{}
	net, err := layers.NewEncoderDecoder(e.params, layers.EncoderDecoderConfig{Model: model})
	if err != nil {
		return err
	}
	e.len = tr.TargetLen()
	e.inputs = []input{{"source", tr.SourceLen()}, {"lengths", 0}, {"answer", tr.TargetLen()}}
	e.sequences = true
	e.example = "7 March 2024"
	e.logits = func(b *layers.Build, in G.Nodes) (*G.Node, error) {
		return net.Forward(b, in[0], in[2], layers.Mask{KeyLengths: in[1]})
	}
	e.predict = func(input string) (string, error) {
		b, err := tr.Batch([]string{input}, 1)
		if err != nil {
			return "", &usageError{err}
		}
		session, err := decode.NewSeq2Seq(net, decode.Seq2SeqConfig{SourceLen: tr.SourceLen(), Capacity: e.len})
		if err != nil {
			return "", err
		}
		defer session.Close()
		if err := session.Read([][]int{b.Sources[:b.Lengths[0]]}); err != nil {
			return "", err
		}
		written, err := decode.Generate(context.Background(), session, [][]int{{tr.Start()}}, decode.Options{MaxTokens: e.len, End: []int{tr.End()}})
		if err != nil {
			return "", err
		}
		return tr.Answer(written[0].Tokens)
	}
	if !withData {
		return nil
	}
	return e.split(task, func(sources []string, size int) (batch, error) {
		b, err := tr.Batch(sources, size)
		return batch{size: b.Size, inputs: [][]int{b.Sources, b.Lengths, b.Inputs}, targets: b.Targets, counted: b.Counted()}, err
	})
}

// split sets up batches of a task's sources, which never both train and validate.
func (e *experiment) split(task data.Task, batchOf func(sources []string, size int) (batch, error)) error {
	split, err := data.NewSplit(task, e.Seed, e.Validation)
	if err != nil {
		return usagef("%w (%s)", err, e.name("validation"))
	}
	validation := split.Validation()
	e.validations = len(validation)
	e.trainBatch = func(epoch, step int) (batch, error) {
		return batchOf(split.Train(epoch, step, e.Batch), e.Batch)
	}
	e.validationBatch = func(i int) (batch, error) {
		return batchOf(validation[i*validationSize:min((i+1)*validationSize, len(validation))], validationSize)
	}
	return nil
}

// learnText sets up a language model: a decoder predicts each character of a text from those before it.
func (e *experiment) learnText(withData bool) error {
	if withData {
		if err := e.openText(); err != nil {
			return err
		}
	}
	vocab, err := data.NewVocab(e.Chars)
	if err != nil {
		return err
	}
	model, err := e.model(vocab.Len(), e.MaxLen, 0)
	if err != nil {
		return err
	}
	decoder, err := layers.NewDecoder(e.params, model)
	if err != nil {
		return err
	}
	e.len = e.MaxLen
	e.inputs = []input{{"ids", e.len}}
	e.logits = func(b *layers.Build, in G.Nodes) (*G.Node, error) { return decoder.Forward(b, in[0], layers.Mask{}) }
	e.generate = func(ctx context.Context, o generation, w io.Writer) error {
		return generateText(ctx, decoder, vocab, o, w)
	}
	e.predict = func(typed string) (string, error) {
		ids, err := vocab.Encode(typed)
		if err != nil {
			return "", &usageError{err}
		}
		if len(ids) == 0 {
			return "", usagef("the input is empty: give the text that the next character should follow")
		}
		ids = ids[max(0, len(ids)-e.MaxLen):]
		label, err := e.labeler([]input{{"ids", len(ids)}})
		if err != nil {
			return "", err
		}
		next, err := label(ids)
		if err != nil {
			return "", err
		}
		return vocab.Decode(next[len(next)-1:])
	}
	return nil
}

// openText opens the text, the same one that a run began with.
func (e *experiment) openText() error {
	var text *data.Text
	var err error
	if e.Chars == "" { // a new run
		text, err = data.OpenText(e.Text)
	} else {
		var vocab *data.Vocab
		if vocab, err = data.NewVocab(e.Chars); err != nil {
			return err
		}
		text, err = data.OpenTextWith(e.Text, vocab)
	}
	var unknown *data.UnknownSymbolError
	if errors.As(err, &unknown) && e.Sum != "" {
		err = fmt.Errorf("the text has changed since the run began: %w", err)
	}
	if err != nil {
		return err
	}
	e.close = text.Close
	e.Chars = text.Vocab().Symbols()
	sum, err := fileSum(e.Text)
	if err != nil {
		return err
	}
	if e.Sum != "" && e.Sum != sum {
		return fmt.Errorf("text %q: the text has changed since the run began", e.Text)
	}
	e.Sum = sum
	if e.validations, err = text.ValidationWindows(e.MaxLen, e.Validation); err != nil {
		return fmt.Errorf("%w (%s)", err, e.name("max_len"))
	}
	e.trainBatch = func(epoch, step int) (batch, error) {
		return characters(text.TrainBatch(e.Seed, epoch, step, e.Batch, e.MaxLen))
	}
	e.validationBatch = func(i int) (batch, error) {
		return characters(text.ValidationBatch(i, validationSize, e.MaxLen, e.Validation))
	}
	e.example, err = opening(text)
	return err
}

// characters is a batch of a language model, which needs no lengths.
func characters(b data.Batch, err error) (batch, error) {
	return batch{size: b.Size, inputs: [][]int{b.Inputs}, targets: b.Targets, counted: b.Counted()}, err
}

// fileSum is the SHA-256 of a file, in hexadecimal.
func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// opening is what a text begins with, as far as it is easily typed.
func opening(text *data.Text) (string, error) {
	ids := make([]int, min(24, text.Len()))
	if err := text.Window(ids, 0); err != nil {
		return "", err
	}
	s, err := text.Vocab().Decode(ids)
	if err != nil {
		return "", err
	}
	s = strings.TrimLeftFunc(s, func(r rune) bool { return r == '-' || unicode.IsSpace(r) || !unicode.IsPrint(r) })
	if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		s = s[:i]
	}
	if s == "" {
		s = "TEXT"
	}
	return s, nil
}
