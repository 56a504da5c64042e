// Llama2c converts a model of llama2.c to a folder as Llama models are published, which heed generate and other
// programs open:
//
//	go run ./examples/llama2c --model stories260K.bin --tokenizer tok512.model --to stories260K
//	go run ./cmd/heed generate stories260K
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/internal/llama2c"
)

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, _ := example.New("llama2c")
	model := flags.String("model", "", "the model, a `FILE` of llama2.c in its first format")
	tokenizer := flags.String("tokenizer", "", "the SentencePiece tokenizer, a `FILE` with the name .model")
	dir := flags.String("to", "", "the `FOLDER` to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *model == "" || *tokenizer == "" || *dir == "" {
		return flags.Wrong(errors.New("llama2c needs --model, --tokenizer and --to"))
	}
	weights, err := os.Open(*model)
	if err != nil {
		return err
	}
	defer weights.Close()
	words, err := os.Open(*tokenizer)
	if err != nil {
		return err
	}
	defer words.Close()
	if err := llama2c.Convert(weights, words, *dir); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s has the model. To read its stories: go run ./cmd/heed generate %[1]s\n", *dir)
	return nil
}
