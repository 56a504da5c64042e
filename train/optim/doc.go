// Package optim steps parameters by their gradients: for any Gorgonia program, with or without package train.
//
// A Solver is a gorgonia.Solver. Its Rule is SGD, Adam, AdamW, Lion, Muon or your own; what all have in common, as
// learning rate, weight decay, clipping, parameter groups, a Schedule and a state that can be saved, is the Solver's.
// It steps what gorgonia.NodesToValueGrads or, with a copy less, Gradients makes of a model. An Average keeps a moving
// average of the weights beside it.
package optim
