// Package judge compares the answers of a model with references: right answers to the same inputs. Answers makes a
// Report of a model and examples, ScoresOf its scores as plain data.
package judge
