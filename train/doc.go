// Package train fits models: anything that builds a loss on a Gorgonia graph from learnable parameters.
//
// Fit is the loop: it takes steps on batches of a Dataset, validates now and then in a graph of its own, stops when a
// loss or a metric no longer improves, and leaves the parameters as they were when it was best. Evaluate judges
// parameters by the same loss. EarlyStopping is a value of its own, for anybody's loop. Package optim steps the
// parameters.
package train
