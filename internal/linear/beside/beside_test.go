package beside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
)

// For labels, a source is one text; for tags, each of its symbols is. The vectors belong to the texts.
func TestTexts(t *testing.T) {
	words := must.Get(tokenizer.New(tokenizer.Tokens, func(yield func(string) bool) { yield("a b c") }, 0))(t)
	sources := linear.Texts([]string{"a b", "", "c"})
	vectors := func(_ context.Context, _ linear.Rows, starts []int) ([]float32, error) {
		return make([]float32, 2*starts[3]), nil
	}
	for kind, want := range map[data.Kind][]int{data.KindClassification: {0, 1, 2, 3}, data.KindTagging: {0, 2, 2, 3}} {
		texts, starts, err := Texts(t.Context(), &data.Rule{Kind: kind, Source: words, Target: words, MaxLen: 4}, sources, vectors)
		if err != nil || !slices.Equal(starts, want) || texts.N != want[3] || len(texts.Vectors) != 2*texts.N {
			t.Errorf("%s: got %d texts with starts %v and %d numbers, %v; want the starts %v", kind, texts.N, starts, len(texts.Vectors), err, want)
		}
	}
	failed := errors.New("no vectors")
	_, _, err := Texts(t.Context(), &data.Rule{}, sources, func(context.Context, linear.Rows, []int) ([]float32, error) { return nil, failed })
	if err != failed {
		t.Errorf("got the error %v, want that of the vectors", err)
	}
}

func TestReadNothing(t *testing.T) {
	if _, err := Read(runfolder.At(t.TempDir()), "run", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want one that wraps fs.ErrNotExist", err)
	}
}

// What Remember has kept isn't computed again.
func TestRemember(t *testing.T) {
	m := &Model{Model: linear.NewModel(&linear.Vocabulary{}, 2, make([]float32, 2))}
	m.Remember(func(i int) data.Example { return data.Example{Source: fmt.Sprint(i)} }, []float32{1, 2, 3, 4}, []int{0, 1, 2})
	scores := must.Get(m.SourceScores(t.Context(), &data.Rule{}, linear.Texts([]string{"1", "0"})))(t)
	if want := [][]float32{{3, 4}, {1, 2}}; !slices.EqualFunc(scores, want, slices.Equal) {
		t.Errorf("got %v, want %v", scores, want)
	}
}
