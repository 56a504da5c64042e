// Package train fits the parameters of a model. A model is anything that builds a loss on a Gorgonia graph from
// learnable parameters.
//
// Fit is the training loop. It takes steps on batches of a Dataset, and at regular checks it computes the loss and
// metrics of validation data. It stops when the monitored value no longer improves, and restores the best parameters.
// Evaluate computes the validation loss and metrics of given parameters. EarlyStopping also works in a loop of your
// own. Package optim has the solvers that update the parameters.
package train
