package train

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
)

// A Problem holds what Fit trains: parameters, a loss and data. The loss can be anything that a Gorgonia graph can
// express.
type Problem struct {
	Params *layers.Params

	// Loss builds the loss of a batch on a graph. It also returns a list of metrics, which may be empty. The Counts of
	// the loss in a training step must add up to more than 0, and so must those in validation. The argument inputs has
	// one node for each tensor of a batch, in the same order and with the same dtypes and shapes. All other float
	// values in the graph must be parameters from Params, bound with b, or be listed in b.Fixed.
	//
	// Loss is called once for each worker and each list of input shapes, for training and for validation. Each call
	// gets its own Build and graph. Several goroutines may call Loss at once. Every call must bind the same parameters
	// and return the same metrics, in the same order.
	Loss func(b *layers.Build, inputs G.Nodes) (loss layers.Loss, metrics []Metric, err error)

	// Train is the training data. Validation is the validation data; if its Len is 0, there is none.
	Train, Validation Dataset

	// ValidationSize is the number of examples in a validation batch. If it is 0, Fit uses BatchSize, and Evaluate uses
	// 64.
	ValidationSize int
}

// A Result describes how training went.
type Result struct {
	History        []Check
	Best           Check  // the check whose parameters were kept: the last one if KeepLast is set or no check improved
	StoppedEarly   bool   // whether Stopping ended training
	StoppedBecause string // the reason why training ended, in words
	Unfinished     bool   // whether a limit or a callback ended training, so that Resume can continue it
}

// A NonFiniteError reports a loss, a parameter or a solver's memory that is NaN or infinite.
type NonFiniteError struct {
	Epoch, Step int // counted from 0; if Validation is set, Step is the number of the validation batch
	Validation  bool
	Loss        float64

	// Value says what isn't finite if it isn't the loss, such as "parameter head.bias". Epoch and Step are then the
	// last step taken; an earlier step may have made it so.
	Value string
}

func (e *NonFiniteError) Error() string {
	if e.Value != "" {
		return fmt.Sprintf("%s is NaN or infinite after epoch %d, step %d: try a lower learning rate, or clip the gradients", e.Value, e.Epoch, e.Step)
	}
	what := "training"
	if e.Validation {
		what = "validation"
	}
	return fmt.Sprintf("the %s loss is %v at epoch %d, step %d: look for NaN or infinity in the data, or try a lower learning rate", what, e.Loss, e.Epoch, e.Step)
}

// check returns an error if ValidationSize or Validation is invalid. It doesn't check Train.
func (p Problem) check() error {
	if p.ValidationSize < 0 {
		return fmt.Errorf("train: ValidationSize must be at least 0, got %d", p.ValidationSize)
	}
	if p.Validation.Len != 0 {
		return p.Validation.check("Validation")
	}
	return nil
}
