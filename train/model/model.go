package model

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/linear/beside"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/layers"
)

// A Model answers inputs. Open returns the trained Model of a run folder, or a published model. A Task, made by New,
// has the Model that it trains.
//
// Several goroutines may call its methods at once, but not while the parameters change, as in Train or Load. A call
// that finds no free graph makes one, and keeps it for later calls.
type Model struct {
	Config *Config // a task that is trained shares it
	Params *layers.Params

	Coder   data.Coder // makes batches of the model's examples
	Network network    // the layers, for training

	// Mixture mixes the answers of the network and the linear model beside it: see UseNetwork.
	Mixture logit.Mixture

	// Thresholds has the least probability of each of the Classes with which it is one of several labels of an answer.
	// Without Thresholds, it is 0.5.
	Thresholds []float64

	Linear   *beside.Model // the linear model beside the network; nil if there is none
	NoLinear error         // why there is no linear model, if the run had one

	// Progress, if set, is called while the model reads many inputs in one call, also before and after training. Its
	// arguments are the number of inputs that the model has read, and of all inputs of the call. The calls come one at
	// a time, on any goroutine.
	Progress func(read, inputs int)

	// Note, if set, is called with notes about how files are read, where that may surprise.
	Note func(note string)

	layout data.Layout
	free   freeList

	sum       func() (string, error) // see Sum; nil before the weights are from a folder
	published *publishedStart        // the folder of the published model that this one is or began as; otherwise nil
	adapter   *layers.Adapter        // for a Tune of lora, while the run trains; an opened model has it in its Params
	prompt    string                 // Embed puts it before each text, and so do answers of a published model with a decoder
	language  string                 // the code of an answer's language, if it begins a text

	int8 bool // the weights become int8 while they are loaded

	// features returns what the head of the network reads, one vector per answer; nil if a linear model can't replace
	// the head.
	features func(b *layers.Build, inputs G.Nodes) (*G.Node, error)

	// table has the embedding of each id, (Tokens, Dim), if the network's function forward accepts embeddings
	// (B, Len, Dim) in place of ids. Otherwise it is nil.
	table *layers.Param
}

// Trained returns the parameters that the run trains and saves. Unless it trains only a part of a model, these are all,
// also parameters without gradients, such as the bias with which DeepSeek-V3 chooses experts.
func (m *Model) Trained() *layers.Params {
	switch {
	case m.adapter != nil:
		return m.adapter.Params
	case m.Config.Partial():
		return m.Params.Unfrozen()
	}
	return m.Params
}

// DescribeParams returns the number of the model's parameters in words, and how many of them training changes if it
// doesn't change all. An adapter's are not among the model's.
func (m *Model) DescribeParams() string {
	s := fmt.Sprintf("%d parameters", m.Params.Count())
	if m.Config.Partial() {
		s += fmt.Sprintf(", %d trained", m.Trained().Count())
	}
	return s
}

// UseNetwork makes the model answer with its network alone, if a linear model answers together with it: see
// Config.Mix. Call it before other methods. It returns an error if the network is a head that was solved together with
// what the linear model reads.
func (m *Model) UseNetwork() error {
	err := m.solvedTogether()
	if err == nil {
		m.Mixture, m.Thresholds = logit.Mixture{}, nil
	}
	return err
}

// solvedTogether returns an error if the linear model is the head, so that the network has no answers of its own.
func (m *Model) solvedTogether() error {
	if m.Mixture.Linear == 1 && m.Config.Solved() {
		return fmt.Errorf("the head of %s was solved together with n-grams, and has no answers without them: train it with --mix=false", m.Config.Task.Name)
	}
	return nil
}
