// Package task has what belongs to one kind of learning as one thing: data, model, loss, score and answer. It is what
// the command heed trains, and what any Go program opens from a run folder to predict with:
//
//	model, err := task.Open("runs/reverse")
//	...
//	answer, err := model.Predict("gorgonia")
//
// To train on a file of rows, take the settings that Named has for seq2seq, classification or tagging, and name the
// file in their Data. What it is like and what is left to it, Task.Look says.
//
// To train a rule of one's own, fill in a data.Rule, take its Defaults, and make a Task of them with New. What it
// learns is plain data, a Config, which config.json in a run folder holds.
package task
