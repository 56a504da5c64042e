package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/heed-go/heed/train/model"
)

// Open finds out what a folder has: here a run that classifies texts, a published model that embeds texts, and one that
// writes text.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "heed")
	check(err)
	defer os.RemoveAll(dir)

	labels, err := model.Open("../task/testdata/landing/rows")
	check(err)
	fmt.Println(labels.Predict("bird finds zebra"))

	encoder, err := model.Open(published(dir, "bert-states"))
	check(err)
	vectors, tokens, err := encoder.Embed(ctx, []string{"a cat sleeps", "a dog runs"})
	check(err)
	fmt.Println(len(vectors), "vectors of", len(vectors[0]), "numbers for", tokens, "tokens")

	writer, err := model.Open(published(dir, "llama"))
	check(err)
	var text strings.Builder
	done, err := writer.Generate(ctx, &text, model.Prompt{Text: "once"}, model.GenerateOptions{Sampler: writer.Sampler(), MaxTokens: 8})
	check(err)
	fmt.Println(done.PromptTokens, "tokens read,", done.Tokens, "written, finished by", done.Finish)
	// Output:
	// animal <nil>
	// 2 vectors of 16 numbers for 22 tokens
	// 4 tokens read, 8 written, finished by length
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// published returns a new folder in parent with a small published model, whose weights are random, and a tokenizer for
// characters.
func published(parent, name string) string {
	dir := filepath.Join(parent, name)
	check(os.CopyFS(dir, os.DirFS(filepath.Join("../../layers/pretrained/testdata", name))))
	vocab := map[string]int{"<unk>": 0}
	for _, c := range " abcdefghijklmnopqrstuvwxyz" {
		vocab[string(c)] = len(vocab)
	}
	content, err := json.Marshal(map[string]any{
		"version": "1.0", "decoder": map[string]any{"type": "Fuse"},
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{}, "unk_token": "<unk>"},
	})
	check(err)
	check(os.WriteFile(filepath.Join(dir, "tokenizer.json"), content, 0o666))
	return dir
}
