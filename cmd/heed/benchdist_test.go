package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/heed-go/heed/cmd/heed/internal/bench"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

func TestBenchDist(t *testing.T) {
	testseed.Slow(t)
	table := succeed(t, "bench", "dist", "--steps=1", "--gbits=25", "--latency=20")
	must.Have(t, table, "processes workers", "Calculated for 25 Gbit/s and 20 µs per message, from ", "124439808       512")
	var s bench.Scaling
	line, rest, _ := strings.Cut(succeed(t, "bench", "dist", "--steps=1", "--json"), "\n")
	if err := json.Unmarshal([]byte(line), &s); err != nil || s.Processes != 1 || s.Workers != 1 || !(s.TokensPerS > 0) {
		t.Errorf("the first line is %s, %v, want 1 process, 1 worker and a speed", line, err)
	}
	var f bench.Forecast
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &f); err != nil || f.Processes != 512 {
		t.Errorf("the other lines are %s, %v, want a last one for 512 processes", rest, err)
	}
	for _, flag := range []string{"--steps=0", "--gbits=0", "--latency=-1", "--gbits=NaN", "--latency=NaN"} {
		fail(t, heed("bench", "dist", flag), 2, "--steps must be at least 1")
	}
}
