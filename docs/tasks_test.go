package docs

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/heed-go/heed/train/model"
)

// Small random models choose labels, answer questions and rank texts.
func Example_tasks() {
	ctx := context.Background()
	testdata := filepath.Join("..", "train", "model", "testdata")
	inference, questions, ranker := filepath.Join(testdata, "pairs", "bert-labels"), filepath.Join(testdata, "qa", "bert-64"), filepath.Join(testdata, "pairs", "bert-cross")

	m, err := model.Open(inference)
	check(err)
	labels := model.Labels{Names: []string{"a dog", "a cat"}}
	answers, err := m.PredictAll(ctx, []string{"who sat on the dog ?"}, model.PredictOptions{Labels: &labels})
	check(err)
	fmt.Println(answers[0].Text)

	m, err = model.Open(questions)
	check(err)
	answers, err = m.PredictAll(ctx, []string{"Where?\tBerlin café"}, model.PredictOptions{Top: 2})
	check(err)
	part := answers[0].Part
	fmt.Println(answers[0].Text, part.Start, part.End)

	m, err = model.Open(ranker)
	check(err)
	documents := []string{"a dog", "who sat ?"}
	ranked, _, err := m.Rank(ctx, "the cat", documents, 1)
	check(err)
	fmt.Println(documents[ranked[0].Index])
	// Output:
	// a dog
	// café 7 12
	// who sat ?
}
