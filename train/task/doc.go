// Package task joins the data, model, loss and scoring of one kind of task. The command heed trains a Task. A Go
// program opens the trained Model of a run folder:
//
//	model, err := task.Open("runs/reverse")
//	...
//	answer, err := model.Predict("gorgonia")
//
// To train on a file of rows, call Named for seq2seq, classification or tagging, and set the file in the Config's Data.
// Task.DescribeData describes the data and the settings chosen for it.
//
// To train your own rule, fill in a data.Rule, call Defaults for its Config, and make a Task with New. A Config is
// plain data; a run folder saves it as config.json.
package task
