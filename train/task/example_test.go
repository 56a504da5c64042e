package task_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/task"
)

// A rule of one's own, from a Go function to a model that answers: every digit becomes what it lacks to 9.
func Example() {
	rule := data.Rule{
		Name: "complement", Kind: data.KindTags, Alphabet: "0123456789", MaxLen: 4,
		Sample: func(rng *rand.Rand, _ int) string { return fmt.Sprint(rng.IntN(10000)) },
		Answer: func(source string) (string, error) {
			return strings.Map(func(digit rune) rune { return '9' - digit + '0' }, source), nil
		},
	}
	config := task.Defaults(rule)
	config.Model.Layers = 1
	config.Training.Epochs = 2
	t, err := task.New(config)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "heed")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	summary, err := t.Train(context.Background(), dir, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d epochs, %.0f %% right\n", summary.Epochs, 100**summary.ValAccuracy)

	model, err := task.Open(dir) // in another program, say
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(model.Predict("2024"))
	// Output:
	// 2 epochs, 100 % right
	// 7975 <nil>
}
