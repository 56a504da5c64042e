package train

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
)

// A Problem is what Fit fits: parameters, a loss and data. It may be anything that a Gorgonia graph can express.
type Problem struct {
	Params *layers.Params

	// Loss returns the mean loss of a batch, a scalar node, and metrics, of which there may be none. The inputs are
	// nodes of the dtypes and shapes of the batch's Values, in their order. Other floats that the graph's inputs hold
	// must be those of Params, bound with b, or be declared in b.Fixed.
	//
	// Loss is called for every list of shapes that batches have, for training and for validation, and once for each
	// worker, then perhaps by several goroutines at once, with a Build and a graph of its own each time. It must do the
	// same every time.
	Loss func(b *layers.Build, inputs G.Nodes) (loss *G.Node, metrics []Metric, err error)

	// Train is what to learn from. Validation, whose Len may be 0 for none, is what to judge the parameters by.
	Train, Validation Dataset

	// ValidationSize is the number of examples in a validation batch. If it is 0, Fit takes the Config's BatchSize, and
	// Evaluate 64.
	ValidationSize int
}

// A Result is how training went.
type Result struct {
	History        []Check
	Best           Check  // the one whose parameters were kept: the last where Stopping says so, or none improved
	StoppedEarly   bool   // Stopping ended training
	StoppedBecause string // why training ended, in words
	Unfinished     bool   // a limit of steps or of time or a callback ended it: with Resume it goes on
}

// A NonFiniteError is a loss that is NaN or infinite.
type NonFiniteError struct {
	Epoch, Step int // counted from 0; Step is the validation batch's where Validation is set
	Validation  bool
	Loss        float64
}

func (e *NonFiniteError) Error() string {
	what := "training"
	if e.Validation {
		what = "validation"
	}
	return fmt.Sprintf("the %s loss is %v at epoch %d, step %d: look for such numbers in the data, or try a lower learning rate", what, e.Loss, e.Epoch, e.Step)
}

// check checks what is wrong with a Problem, but for what it trains on, before it is tried.
func (p Problem) check() error {
	if p.ValidationSize < 0 {
		return fmt.Errorf("train: ValidationSize must be at least 0, got %d", p.ValidationSize)
	}
	if p.Validation.Len != 0 {
		return p.Validation.check("Validation")
	}
	return nil
}
