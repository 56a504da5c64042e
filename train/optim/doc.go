// Package optim has optimizers for Gorgonia programs, with or without package train.
//
// A Solver is a gorgonia.Solver. Its Rule decides how a parameter steps: SGD, Adam, AdamW, Lion, Muon or your own. The
// Solver does what all rules share: learning rate, weight decay, clipping, parameter groups, a Schedule, and a state
// that can be saved. Pass its Step the slice from gorgonia.NodesToValueGrads, or the slice from Gradients, which avoids
// a copy of each gradient. An Average keeps a moving average of the weights.
package optim
