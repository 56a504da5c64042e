package main

import (
	"io"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/internal/must"
)

func TestCalls(t *testing.T) {
	golden.Refuses(t, run)
	must.Fail(t, run(io.Discard, nil), "llama2c needs --model, --tokenizer and --to")
}
