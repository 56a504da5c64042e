package judge_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
	"github.com/heed-go/heed/train/task/judge"
)

// Judge a classification model on another file, and predict the labels of new texts.
func ExampleAnswers() {
	dir, err := os.MkdirTemp("", "heed")
	check(err)
	defer os.RemoveAll(dir)
	labels := map[string]string{"apple": "fruit", "pear": "fruit", "dog": "animal", "cat": "animal"}
	var rows []string
	for _, a := range []string{"the", "a", "my", "one", "no"} {
		for _, b := range []string{"red", "old", "big", "small"} {
			for thing, label := range labels {
				rows = append(rows, fmt.Sprintf("%s %s %s,%s\n", a, b, thing, label))
			}
		}
	}
	slices.Sort(rows)
	learned, other := filepath.Join(dir, "learned.csv"), filepath.Join(dir, "other.csv")
	check(os.WriteFile(learned, []byte("text,label\n"+strings.Join(rows, "")), 0o666))
	if err := os.WriteFile(other, []byte("text,label\na red dog,animal\nthe old pear,fruit\nmy cat,pet\n"), 0o666); err != nil {
		log.Fatal(err)
	}
	config, err := task.Named("classification", 0)
	check(err)
	config.Data.File = learned
	config.Training.Optimizer.LearningRate, config.Training.MaxEpochs = 0.01, 10
	t, err := task.New(config)
	check(err)
	_, err = t.Train(context.Background(), filepath.Join(dir, "run"), train.RunOptions{})
	check(err)

	examples, _, err := task.ReadExamples(t.Model, other)
	check(err)
	report, err := judge.Answers(context.Background(), t.Model, examples, model.PredictOptions{})
	check(err)
	fmt.Printf("%d of %d right, %d with an unknown label\n", report.Right, len(report.Judged), report.UnknownReferences)
	answers, err := t.PredictAll(context.Background(), []string{"a big cat", "one apple", ""}, model.PredictOptions{Top: 2})
	check(err)
	for _, a := range answers {
		fmt.Printf("%q %v", a.Text, a.Err)
		for _, t := range a.Top {
			fmt.Printf(", %s %t", t.Text, math.Exp(t.LogProb) > 0.5)
		}
		fmt.Println()
	}
	// Output:
	// 2 of 3 right, 1 with an unknown label
	// "animal" <nil>, animal true, fruit false
	// "fruit" <nil>, fruit true, animal false
	// "" "": task classification: the source is empty, want 1 to 64 symbols
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
