package main

import (
	"io"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/internal/must"
)

func TestCalls(t *testing.T) {
	golden.Refuses(t, run, "-epochs")
	must.Fail(t, run(io.Discard, nil), "finetune needs --from")
}
