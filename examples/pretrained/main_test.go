package main

import (
	"io"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/internal/must"
)

func TestCalls(t *testing.T) {
	golden.Refuses(t, run, "-steps")
	must.Fail(t, run(io.Discard, nil), "pretrained needs --text or --encoder")
}
