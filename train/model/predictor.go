package model

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/logit"
)

// batchTokens is roughly the number of tokens of a batch with more than one row. A freeList keeps predictors for at
// most freeBatches such batches per processor.
const (
	batchTokens = 1 << 9
	freeBatches = 8
)

// A query has the ids of an input, and the answers that the model chose for it.
type query struct {
	ids     []int
	targets []int // for tags: positions where it is data.Ignore have no tag; nil if every position has an answer
	place   int   // index of the input
	number  int   // of the window, if the network reads windows
	first   int   // for tags: symbol of the input that has the first answer; above 0 in later parts of a long input
	window  *data.Window
	without float64       // for kind qa: probability that the window has no answer
	top     int           // number of choices wanted; 0 means 1
	mixture logit.Mixture // of the output and of linear
	linear  []float32     // the baseline's scores, if they are mixed with the output
	keep    bool          // whether the predictor sets output
	output  []float32     // of the network: (answers, classes) or a number
	choices []choice      // likeliest first
}

// A choice is an answer as a network computes it: targets with the logarithm of their probability, a number
// or a vector.
type choice struct {
	targets []int
	logProb float64
	number  float64
	vector  []float32 // for kind embed
	scores  []float64 // for multilabel: probability of each label

	start, end int // for kind qa: bytes of the context; number is the probability
}

// A batchShape is the shape of the batches of a predictor.
type batchShape struct {
	size  int // number of rows
	width int // length of a row of inputs
	beam  int
	cores int // see layers.Build
}

// A predictor sets the choices of up to batchShape.size rows. Only one goroutine at a time may call it.
type predictor func(ctx context.Context, rows []query) error

// A freeList keeps the predictors that aren't in use, in the order of their last use. To bound the memory, it drops the
// oldest ones when all have more than freeBatches·GOMAXPROCS·batchTokens tokens together.
type freeList struct {
	mu     sync.Mutex
	free   []freePredictor
	tokens int
}

type freePredictor struct {
	shape batchShape
	predictor
	tokens int // tokens of a batch; memory is roughly proportional to them
}

// take removes a predictor of the given shape and returns it. If there is none, it returns nil.
func (l *freeList) take(s batchShape) predictor {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range slices.Backward(l.free) {
		if p.shape == s {
			l.free = slices.Delete(l.free, i, i+1)
			l.tokens -= p.tokens
			return p.predictor
		}
	}
	return nil
}

func (l *freeList) leave(p freePredictor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, p)
	l.tokens += p.tokens
	forget := 0
	for ; l.tokens > freeBatches*runtime.GOMAXPROCS(0)*batchTokens && forget < len(l.free)-1; forget++ {
		l.tokens -= l.free[forget].tokens
	}
	l.free = slices.Delete(l.free, 0, forget)
}
