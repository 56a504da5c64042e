package task_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// Train a model for your own rule, written as a Go function: it replaces each digit d with 9 − d.
func Example() {
	rule := data.Rule{
		Name: "complement", Kind: data.KindTagging, Alphabet: "0123456789", MaxLen: 4,
		Sample: func(rng *rand.Rand, _ int) string { return fmt.Sprint(rng.IntN(10000)) },
		Answer: func(source string) (string, error) {
			return strings.Map(func(digit rune) rune { return '9' - digit + '0' }, source), nil
		},
	}
	config := task.Defaults(rule)
	config.Model.Layers = 1
	config.Training.MaxEpochs = 2
	t, err := task.New(config)
	check(err)
	dir, err := os.MkdirTemp("", "heed")
	check(err)
	defer os.RemoveAll(dir)
	summary, err := t.Train(context.Background(), dir, train.RunOptions{})
	check(err)
	fmt.Printf("%d epochs, %.0f %% right\n", summary.Epochs, 100**summary.ValScore)

	model, err := model.Open(dir) // for example, in another program
	check(err)
	fmt.Println(model.Predict("2024"))
	// Output:
	// 2 epochs, 100 % right
	// 7975 <nil>
}

// Train a model on a file of texts and labels, and predict the label of another text.
func ExampleTask_DescribeData() {
	dir, err := os.MkdirTemp("", "classification")
	check(err)
	defer os.RemoveAll(dir)
	var rows strings.Builder
	rows.WriteString("id,text,label\n")
	for i := range 300 {
		fmt.Fprintf(&rows, "%d,%d degrees,%s\n", i, 3*i, map[bool]string{false: "cold", true: "hot"}[3*i >= 100])
	}
	file := filepath.Join(dir, "weather.csv")
	check(os.WriteFile(file, []byte(rows.String()), 0o666))

	config, err := task.Named("classification", 0)
	check(err)
	config.Data.File, config.Training.MaxEpochs = file, 3
	t, err := task.New(config)
	check(err)
	defer t.Close()
	fmt.Print(strings.ReplaceAll(t.DescribeData(), file, "weather.csv"))
	summary, err := t.Train(context.Background(), filepath.Join(dir, "run"), train.RunOptions{})
	check(err)
	answer, err := t.Predict("500 degrees")
	check(err)
	fmt.Println(summary.Score.Name, summary.Score.Total, answer)
	// Output:
	// weather.csv: 300 rows with 300 different sources
	//   columns: text and label, named in the header
	//   sources: characters; vocabulary of 16; length at most 11, median 11
	//   training labels: hot 239 (88.5 %), cold 31 (11.5 %)
	//   training: 270 rows; validation: 30 rows (all rows of 30 sources, chosen by seed 1)
	//   most frequent: always answering hot is right for 90.0 % of the validation labels
	//   few validation labels: cold 3 (with fewer than 20, scores per label are rough)
	// accuracy 30 hot
}

// The tags B-PER and I-PER mark a person. With words, the input is plain text.
func ExampleAnswer() {
	var rows strings.Builder
	for _, first := range []string{"Ann", "Bob", "Zoë", "Tom"} {
		for _, last := range []string{"Lee", "Kim", "Poe", "Day", "Fox"} {
			for _, verb := range []string{"sees", "hears", "meets"} {
				fmt.Fprintf(&rows, "%s %s %s .\tB-PER I-PER O O\nwho %s %s ?\tO O B-PER O\n", first, last, verb, verb, first)
			}
		}
	}
	m := learned("tagging", "tokens\ttags\n"+rows.String(), tokenizer.Words)
	answers, err := m.PredictAll(context.Background(), []string{"Who sees Ann? Zoë Lee."}, model.PredictOptions{})
	check(err)
	for _, a := range answers {
		fmt.Println(a.Text)
		for _, s := range a.Spans {
			fmt.Println(s.Label, s.Start, s.End, s.Text)
		}
	}
	// Output:
	// O O B-PER O B-PER I-PER O
	// PER 9 12 Ann
	// PER 14 22 Zoë Lee
}

// Explain which words made a model choose a label.
func ExampleModel_Explain() {
	var rows strings.Builder
	for _, a := range []string{"the", "a", "my", "one", "no"} {
		for _, b := range []string{"red", "old", "big", "small"} {
			fmt.Fprintf(&rows, "%s %s apple\tfruit\n%s %s dog\tanimal\n", a, b, a, b)
		}
	}
	m := learned("classification", "text\tlabel\n"+rows.String(), tokenizer.Tokens)
	words, err := m.Explain("my old dog", "animal", "fruit")
	check(err)
	largest := slices.MaxFunc(words, func(a, b task.Contribution) int { return cmp.Compare(a.Value, b.Value) })
	fmt.Println(len(words), "words, most of all", largest.Word)
	// Output:
	// 3 words, most of all dog
}

// learned returns a model that was trained on the rows of a TSV file.
func learned(name, rows string, units tokenizer.Units) *model.Model {
	dir, err := os.MkdirTemp("", "heed")
	check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "rows.tsv")
	check(os.WriteFile(file, []byte(rows), 0o666))
	config, err := task.Named(name, 0)
	check(err)
	config.Data.File, config.Data.SourceUnits = file, units
	config.Training.Optimizer.LearningRate, config.Training.MaxEpochs = 0.01, 10
	t, err := task.New(config)
	check(err)
	defer t.Close()
	_, err = t.Train(context.Background(), filepath.Join(dir, "run"), train.RunOptions{})
	check(err)
	return t.Model
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
