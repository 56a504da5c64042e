// Package train fits models: anything that builds a loss on a Gorgonia graph from learnable parameters.
//
// Fit is the loop: it runs epochs of batches, validates after each in a graph of its own, stops when the validation
// loss no longer improves, and leaves the parameters as they were after the best epoch. EarlyStopping is a value of its
// own, for anybody's loop; StopEarly is the loop for two functions of one's own. Package optim steps the parameters.
package train
