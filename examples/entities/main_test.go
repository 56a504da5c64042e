package main

import (
	"io"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/internal/must"
)

func TestCalls(t *testing.T) {
	golden.Refuses(t, run, "-rule")
	must.Fail(t, run(io.Discard, nil), "entities needs --folder")
	must.Fail(t, run(io.Discard, []string{"-folder", "../../train/model/testdata/entities/pieces", "-rule", "frist"}), "first")
}

func TestRun(t *testing.T) {
	var out strings.Builder
	must.Do(t, run(&out, []string{"-folder", "../../train/model/testdata/entities/pieces"}))
	must.Have(t, out.String(), "PER    0.906  bytes 0 to 3  Ann\n")
}
