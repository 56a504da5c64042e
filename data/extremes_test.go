package data

import (
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/extremes"
	"github.com/heed-go/heed/internal/must"
)

func TestExtremes(t *testing.T) {
	seq2seq := must.Get(Named("reverse", 0))(t)
	seq2seq.Kind, seq2seq.MaxLen, seq2seq.MaxAnswer = KindSeq2Seq, 8, 8
	coder := must.Get(NewCoder(seq2seq))(t)
	batch := must.Get(coder.Batch([]Example{{Source: "ab", Answer: "ba"}, {Source: "abc", Answer: "cba"}}))(t)
	sample := strings.Repeat("to be or not to be ", 20)
	text := must.Get(newText("text", textSource{ReaderAt: strings.NewReader(sample), size: int64(len(sample))}, nil))(t)
	// counted returns NaN if the lengths of a batch's slices don't match its Size and Len.
	counted := func(b Batch, err error) ([]float64, error) {
		if err == nil && (len(b.Lengths) != b.Size || len(b.Inputs) != b.Size*b.Len) {
			return []float64{math.NaN()}, nil
		}
		return nil, err
	}
	type (
		name   struct{ MaxLen int }
		split  struct{ Validation, Epoch, Step, Size int }
		pad    struct{ Width, Pad int }
		resize struct {
			Layout                  Layout
			Size, Length, TargetLen int
		}
		window struct{ Epoch, Step, Size, Length, Limit, Number, Start int }
	)
	results := []string{"Batch", "Example", "Settings", "TaggedPart", "Window"} // train/task tries the Settings as a part of its Config
	extremes.Run(t, results,
		extremes.Of(seq2seq, func(c Rule) ([]float64, error) {
			coder, err := NewCoder(c)
			if err != nil {
				return nil, err
			}
			if _, err := NewSplit(c, 1, 10); err != nil {
				return nil, err
			}
			return counted(coder.Batch([]Example{{Source: "ab", Answer: "ba"}}))
		}),
		extremes.Of(coder.Layout(), func(c Layout) ([]float64, error) { return counted(batch.Resize(c, 2, 8, 9)) }),
		extremes.Of(resize{coder.Layout(), 4, 9, 9}, func(c resize) ([]float64, error) {
			return counted(batch.Resize(c.Layout, c.Size, c.Length, c.TargetLen))
		}),
		extremes.Of(name{4}, func(c name) ([]float64, error) {
			_, err := Named("reverse", c.MaxLen)
			return nil, err
		}),
		extremes.Of(split{10, 1, 1, 4}, func(c split) ([]float64, error) {
			s, err := NewSplit(seq2seq, 1, c.Validation)
			if err != nil {
				return nil, err
			}
			_, err = s.Train(c.Epoch, c.Step, c.Size)
			return nil, err
		}),
		extremes.Of(pad{3, 0}, func(c pad) ([]float64, error) { return counted(Pad([][]int{{1}, {2, 3}}, c.Width, c.Pad)) }),
		extremes.Of(window{1, 1, 2, 4, 3, 1, 5}, func(c window) ([]float64, error) {
			if _, err := text.ValidationWindows(c.Length, c.Limit); err != nil {
				return nil, err
			}
			if err := text.Window(make([]int, 3), c.Start); err != nil {
				return nil, err
			}
			if results, err := counted(text.TrainBatch(1, c.Epoch, c.Step, c.Size, c.Length)); err != nil || results != nil {
				return results, err
			}
			return counted(text.ValidationBatch([]int{0, c.Number}, c.Length, c.Limit))
		}),
	)
}
