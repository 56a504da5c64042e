package data_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	"github.com/heed-go/heed/data"
)

// A task, from its name to the batches of an epoch and its validation.
func Example() {
	task, err := data.Named("add", 0)
	if err != nil {
		log.Fatal(err)
	}
	labeler, err := data.NewLabeler(task)
	if err != nil {
		log.Fatal(err)
	}
	split, err := data.NewSplit(task, 1, 1000)
	if err != nil {
		log.Fatal(err)
	}
	for step := range 3 {
		batch, err := labeler.Batch(split.Train(0, step, 64), 64)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("train on", batch.Size, "rows of", batch.Len)
	}
	rows := 0
	for sources := range slices.Chunk(split.Validation(), 64) {
		batch, err := labeler.Batch(sources, 64) // the last one is short: it is padded to 64 rows
		if err != nil {
			log.Fatal(err)
		}
		if batch.Counted() > 0 {
			rows += len(sources)
		}
	}
	fmt.Println("validate on", rows)
	// Output:
	// train on 64 rows of 6
	// train on 64 rows of 6
	// train on 64 rows of 6
	// validate on 1000
}

func ExampleTask_Answer() {
	task, err := data.Named("reverse", 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(task.Answer("attention"))
	_, err = task.Answer("Attention")
	fmt.Println(err)
	// Output:
	// noitnetta <nil>
	// task reverse: source "Attention": symbol 'A' at position 0 (from 0) isn't one of the 26 known: "abcdefghijklmnopqrstuvwxyz"
}

func ExampleLabeler() {
	task, err := data.Named("reverse", 4)
	if err != nil {
		log.Fatal(err)
	}
	labeler, err := data.NewLabeler(task)
	if err != nil {
		log.Fatal(err)
	}
	batch, err := labeler.Batch([]string{"abcd", "ba"}, 2)
	if err != nil {
		log.Fatal(err)
	}
	for r := range batch.Size {
		row := r * batch.Len
		target := batch.Targets[row : row+batch.Len]
		answer, err := labeler.Answer(target[:batch.Lengths[r]])
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Inputs[row:row+batch.Len], target, answer)
	}
	// Output:
	// [0 1 2 3 26] [3 2 1 0 26] dcba
	// [1 0 26 27 27] [0 1 26 -1 -1] ab
}

func ExampleTranslator() {
	task, err := data.Named("dates", 0)
	if err != nil {
		log.Fatal(err)
	}
	translator, err := data.NewTranslator(task)
	if err != nil {
		log.Fatal(err)
	}
	pairs, err := translator.Batch([]string{"Thursday, March 7, 2024", "7.3.24"}, 2)
	if err != nil {
		log.Fatal(err)
	}
	for r := range pairs.Size {
		source, err := translator.Answer(pairs.Sources[r*pairs.SourceLen:][:pairs.SourceLen])
		if err != nil {
			log.Fatal(err)
		}
		answer, err := translator.Answer(pairs.Targets[r*pairs.TargetLen:][:pairs.TargetLen])
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(source, "→", answer)
	}
	// Output:
	// thursday, march 7, 2024 → 2024-03-07
	// 7.3.24 → 2024-03-07
}

func ExampleVocab() {
	vocab, err := data.NewVocab("deh")
	if err != nil {
		log.Fatal(err)
	}
	ids, err := vocab.Encode("heed")
	fmt.Println(ids, err)
	_, err = vocab.Encode("need")
	var unknown *data.UnknownSymbolError
	if errors.As(err, &unknown) {
		fmt.Printf("%q at %d\n", unknown.Symbol, unknown.Position)
	}
	// Output:
	// [2 1 1 0] <nil>
	// 'n' at 0
}

func ExampleText() {
	dir, err := os.MkdirTemp("", "heed")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "haiku.txt")
	if err := os.WriteFile(path, []byte("古池や蛙飛びこむ水の音\nfuruike ya kawazu tobikomu mizu no oto\n"), 0o644); err != nil {
		log.Fatal(err)
	}

	text, err := data.OpenText(path)
	if err != nil {
		log.Fatal(err)
	}
	defer text.Close()
	fmt.Println(text.Len(), "characters,", text.Vocab().Len(), "symbols")

	batch, err := text.ValidationBatch(0, 1, 3, 0)
	if err != nil {
		log.Fatal(err)
	}
	input, err := text.Vocab().Decode(batch.Inputs)
	if err != nil {
		log.Fatal(err)
	}
	target, err := text.Vocab().Decode(batch.Targets)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q → %q\n", input, target)
	// Output:
	// 51 characters, 28 symbols
	// "o o" → " ot"
}
