package judge

import (
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
)

// The line of scores writes all of them with the same number of digits.
func TestScoreDigits(t *testing.T) {
	c := &model.Config{Task: data.Rule{Kind: data.KindMultiLabel}}
	s := NewScore(c, 0.5, map[string]float64{"val_micro_f1": 1, "val_macro_f1": 1, "val_subset_accuracy": 1}, 4)
	must.Have(t, s.String(), "micro f1 1.0000", "macro f1 1.000, ", "subset accuracy 1.000")
}
