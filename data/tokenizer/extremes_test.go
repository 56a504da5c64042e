package tokenizer

import (
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/extremes"
)

func TestExtremes(t *testing.T) {
	sample := strings.Repeat("to be or not to be ", 20)
	type numbers struct{ Size, ID int }
	extremes.Run(t, []string{"Input", "InvalidUTF8Error", "Token", "UnknownSymbolError"}, extremes.Of(numbers{300, 1}, func(c numbers) ([]float64, error) {
		for _, units := range []Units{Characters, Tokens, Words, BPE} {
			tok, err := New(units, slices.Values([]string{sample}), c.Size)
			if err != nil {
				return nil, err
			}
			if _, err := tok.Decode([]int{c.ID}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}))
}
