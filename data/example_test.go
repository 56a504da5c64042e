package data_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/data/toy"
)

func init() { data.Named = toy.Named }

// Draw batches of a rule for training and validation.
func Example() {
	rule, err := toy.Named("add", 0)
	if err != nil {
		log.Fatal(err)
	}
	coder, err := data.NewCoder(rule)
	if err != nil {
		log.Fatal(err)
	}
	split, err := data.NewSplit(rule, 1, 1000)
	if err != nil {
		log.Fatal(err)
	}
	for step := range 3 {
		examples, err := split.Train(0, step, 64)
		if err != nil {
			log.Fatal(err)
		}
		batch, err := coder.Batch(examples)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("train on", batch.Size, "rows with", batch.Len, "positions")
	}
	rows := 0
	for examples := range slices.Chunk(split.Validation(), 64) {
		batch, err := coder.Batch(examples) // the last batch is smaller
		if err != nil {
			log.Fatal(err)
		}
		if batch.Counted() > 0 {
			rows += len(examples)
		}
	}
	fmt.Println("validate on", rows, "rows")
	// Output:
	// train on 64 rows with 6 positions
	// train on 64 rows with 6 positions
	// train on 64 rows with 6 positions
	// validate on 1000 rows
}

func ExampleNewCoder_tagging() {
	rule, err := toy.Named("reverse", 4)
	if err != nil {
		log.Fatal(err)
	}
	coder, err := data.NewCoder(rule)
	if err != nil {
		log.Fatal(err)
	}
	batch, err := coder.Batch([]data.Example{{Source: "abcd", Answer: "dcba"}, {Source: "ba", Answer: "ab"}})
	if err != nil {
		log.Fatal(err)
	}
	for r := range batch.Size {
		row := r * batch.Len
		target := batch.Targets[row : row+batch.Len]
		answer, err := coder.Answer(target[:batch.Lengths[r]])
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Inputs[row:row+batch.Len], target, answer)
	}
	_, err = coder.Batch([]data.Example{{Source: "Abc"}})
	fmt.Println(err)
	// Output:
	// [0 1 2 3 26] [3 2 1 0 26] dcba
	// [1 0 26 27 27] [0 1 26 -1 -1] ab
	// task reverse: source "Abc": symbol 'A' at position 0 (from 0) isn't one of the 26 known: "abcdefghijklmnopqrstuvwxyz"
}

func ExampleNewCoder_seq2seq() {
	rule, err := toy.Named("dates", 0)
	if err != nil {
		log.Fatal(err)
	}
	coder, err := data.NewCoder(rule)
	if err != nil {
		log.Fatal(err)
	}
	batch, err := coder.Batch([]data.Example{{Source: "Thursday, March 7, 2024", Answer: "2024-03-07"}, {Source: "7.3.24", Answer: "2024-03-07"}})
	if err != nil {
		log.Fatal(err)
	}
	for r := range batch.Size {
		source, err := coder.Answer(batch.Inputs[r*batch.Len:][:batch.Len])
		if err != nil {
			log.Fatal(err)
		}
		answer, err := coder.Answer(batch.Targets[r*batch.TargetLen:][:batch.TargetLen])
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(source, "→", answer)
	}
	// Output:
	// thursday, march 7, 2024 → 2024-03-07
	// 7.3.24 → 2024-03-07
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

	text, err := data.OpenText(data.TextFiles{Paths: []string{path}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer text.Close()
	fmt.Println(text.Len(), "characters,", text.Tokenizer().Len(), "symbols")

	batch, err := text.ValidationBatch([]int{0}, 3, 0)
	if err != nil {
		log.Fatal(err)
	}
	input, err := text.Tokenizer().Decode(batch.Inputs)
	if err != nil {
		log.Fatal(err)
	}
	target, err := text.Tokenizer().Decode(batch.Targets)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q → %q\n", input, target)
	// Output:
	// 51 characters, 28 symbols
	// "o o" → " ot"
}

// Turn your own texts into rows of token ids.
func ExamplePad() {
	texts := []string{"a fine film , a fine cast !", "not a fine film ."}
	tok, err := tokenizer.New(tokenizer.Tokens, slices.Values(texts), 4) // the 3 most frequent tokens, and one id for all others
	if err != nil {
		log.Fatal(err)
	}
	var rows [][]int
	for _, text := range texts {
		ids, err := tok.Encode(text)
		if err != nil {
			log.Fatal(err)
		}
		rows = append(rows, ids)
	}
	batch, err := data.Pad(rows, 0, tok.Unknown())
	if err != nil {
		log.Fatal(err)
	}
	for r := range batch.Size {
		ids := batch.Inputs[r*batch.Len:][:batch.Len]
		text, err := tok.Decode(ids[:batch.Lengths[r]])
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ids, text)
	}
	// Output:
	// [0 1 2 3 0 1 3 3] a fine film � a fine � �
	// [3 0 1 2 3 3 3 3] � a fine film �
}

// Learn BPE tokens from a file. They can encode any other text.
func ExampleText_LearnBPE() {
	dir, err := os.MkdirTemp("", "heed")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "to-be.txt")
	if err := os.WriteFile(path, bytes.Repeat([]byte("to be or not to be, "), 20), 0o644); err != nil {
		log.Fatal(err)
	}
	text, err := data.OpenText(data.TextFiles{Paths: []string{path}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer text.Close()
	if err := text.LearnBPE(260); err != nil {
		log.Fatal(err)
	}
	ids, err := text.Tokenizer().Encode("to be, être")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text.Len(), "tokens,", text.Tokenizer().Len(), "different ids")
	fmt.Println(len(ids), "tokens in another text")
	// Output:
	// 242 tokens, 260 different ids
	// 9 tokens in another text
}
