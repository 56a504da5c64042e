// Package task joins the data, model, loss and scoring of one kind of task. The command heed trains a Task. A Go
// program opens the trained Model of a run folder:
//
//	m, err := model.Open("runs/reverse")
//	...
//	answer, err := m.Predict("gorgonia")
//
// Open also opens the folders of published models, such as a Llama or a BERT: Model.Generate continues texts and
// conversations, Model.Embed makes vectors of texts, and Model.ScoreText says how well a model predicts a text.
//
// To train on a file, call Named with the name of a kind, such as "classification", and set the file in the Config's
// Data. Task.DescribeData describes the rows of the file and the settings chosen for them.
//
// To train your own rule, fill in a data.Rule, call Defaults for its Config, and make a Task with New. A Config is
// plain data; a run folder saves it as config.json.
//
// ReadExamples reads the rows of other files, and judge.Answers compares a model's answers with them.
package task
