package task

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
)

func TestPack(t *testing.T) {
	for _, tt := range []struct {
		lengths []int
		width   int
		want    [][]int
	}{
		{nil, 5, nil},
		{[]int{5}, 5, [][]int{{0}}},
		{[]int{2, 3, 4, 1}, 5, [][]int{{2, 3}, {1, 0}}},
		{[]int{2, 6, 3, 4, 3}, 8, [][]int{{1, 0}, {3, 2}, {4}}}, // 6+2, 4+3, 3
		{[]int{1, 1, 1}, 2, [][]int{{0, 1}, {2}}},
	} {
		if got := pack(tt.lengths, tt.width); fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("pack(%d, %d) is %d, want %d", tt.lengths, tt.width, got, tt.want)
		}
	}
	r := rand.New(rand.NewPCG(testseed.Of(t), 1))
	for range 50 {
		width, lengths, sum := 1+r.IntN(300), make([]int, r.IntN(400)), 0
		for i := range lengths {
			lengths[i] = 1 + r.IntN(width)
			sum += lengths[i]
		}
		rows, seen := pack(lengths, width), make([]bool, len(lengths))
		for _, row := range rows {
			used := 0
			for _, i := range row {
				if used += lengths[i]; seen[i] {
					t.Fatalf("sequence %d is in two rows", i)
				}
				seen[i] = true
			}
			if used > width {
				t.Fatalf("a row of %d has %d symbols", width, used)
			}
		}
		if slices.Contains(seen, false) || len(rows) > sum*11/9/width+2 { // the bound of best-fit decreasing is about 11/9
			t.Fatalf("%d sequences of together %d symbols are in %d rows of %d, some in none: %t", len(lengths), sum, len(rows), width, slices.Contains(seen, false))
		}
	}
}

// longFolder returns a chatFolder whose model reads 128 tokens.
func longFolder(t *testing.T) string {
	t.Helper()
	dir := chatFolder(t, "llama")
	path := filepath.Join(dir, "config.json")
	content := read(t, path)
	write(t, path, regexp.MustCompile(`"max_position_embeddings": *\d+`).ReplaceAllString(content, `"max_position_embeddings": 128`))
	return dir
}

// Packed conversations must have the loss that ScoreText computes conversation by conversation. A run that is resumed,
// with other workers, must have the same bytes.
func TestPackedChats(t *testing.T) {
	t.Parallel()
	file := chatFile(t, 60)
	c := onChats(t, longFolder(t), file, "")
	c.Data.ValidationFile, c.Data.Pack = file, "yes"
	task := made(t, c)
	if n := len(task.set.(*chatSet).rows[0]); n != 14 || !strings.Contains(task.DescribeData(), "packed: 28 rows of 128 tokens, 88 % full") {
		t.Errorf("60 conversations are in %d rows:\n%s", n, task.DescribeData())
	}
	got := must.Get(task.Evaluate(t.Context()))(t)
	want := must.Get(task.ScoreText(t.Context(), data.TextFiles{Paths: []string{file}}, WindowOptions{}))(t)
	if math.Abs(got.Loss-want.Loss) > 1e-5 || got.Total != want.Tokens {
		t.Errorf("the loss is %v, want %v", got, want)
	}
	dir := filepath.Join(t.TempDir(), "run")
	run(t, task, dir, train.RunOptions{})
	if pack := wantResumed(t, c, task.Config.Training.StepsPerEpoch+1, dir).Config.Data.Pack; pack != "yes" {
		t.Errorf("config.json has the pack %q, want yes", pack)
	}
}

// New packs conversations that are shorter than half a row, unless Pack is no. A batch then has about as many
// conversations as without.
func TestPackByDefault(t *testing.T) {
	t.Parallel()
	published, file := longFolder(t), chatFile(t, 60) // about 27 tokens each
	for _, tt := range []struct {
		maxLen, batch int
		pack          string
		want          string
		wantBatch     int
	}{
		{0, 0, "", "", 8},
		{0, 0, "yes", "yes", 2}, // rows of 128 tokens
		{50, 0, "", "", 8},
		{60, 0, "", "yes", 4},
		{128, 0, "", "yes", 2},
		{128, 0, "no", "no", 8},
		{128, 6, "", "yes", 6},
	} {
		c := onChats(t, published, file, "")
		c.Task.MaxLen, c.Data.Pack, c.Training.BatchSize = tt.maxLen, tt.pack, tt.batch
		got := made(t, c).Config
		if got.Data.Pack != tt.want || got.Training.BatchSize != tt.wantBatch {
			t.Errorf("%+v: got pack %q, rows of %d and batches of %d", tt, got.Data.Pack, got.Task.MaxLen, got.Training.BatchSize)
		}
	}
	for pack, words := range map[string]string{"maybe": "data.pack must be yes, no or empty", "yes": "data.pack is for task text, not for mlm"} {
		c := small(t, "mlm")
		c.Data.Pack = pack
		must.Refuse(New(c))(t, words)
	}
	c := small(t, "classification")
	c.Data.Pack = "yes"
	must.Refuse(New(c))(t, "data.pack is for a text")
}

// The documents of a packed window must have the loss that they have in rows of their own.
func TestPackedText(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	var lines strings.Builder
	for range 300 {
		fmt.Fprintf(&lines, "{\"text\": %q}\n", strings.Repeat("ab ", r.IntN(2))+strings.Repeat("xyz", 1+r.IntN(2)))
	}
	c := withFile(t, "text", "lines.jsonl", lines.String())
	task := made(t, c)
	if task.Config.Data.Pack != "yes" {
		t.Fatalf("documents of about 7 characters aren't packed in rows of %d", task.Config.Task.MaxLen)
	}
	got := must.Get(task.Evaluate(t.Context()))(t)
	examples, alone := task.set.validation(), *task
	alone.Config.Data.Pack = "no"
	sum, targets := 0.0, 0
	for i := range examples.n {
		b := must.Get(examples.batch([]int{i}))(t)
		for start := 0; start < b.Len; {
			end := start + 1
			for end < b.Len && b.Documents[end] == b.Documents[start] {
				end++
			}
			part := data.Batch{Inputs: b.Inputs[start:end], Targets: b.Targets[start:end], Size: 1, Len: end - start, TargetLen: end - start}
			if part.Counted() > 0 {
				sum, targets = sum+lossOf(t, &alone, part), targets+part.Counted()
			}
			start = end
		}
	}
	if want := sum / float64(targets); math.Abs(got.Loss-want) > 1e-5 || got.Total != targets {
		t.Errorf("the loss of packed documents is %v of %d, want %v of %d", got.Loss, got.Total, want, targets)
	}

	dir := filepath.Join(t.TempDir(), "run")
	run(t, task, dir, train.RunOptions{})
	wantResumed(t, c, 7, dir)

	saved := must.Get(ReadConfig(dir))(t) // the same text, but other documents
	write(t, c.Data.File, strings.Replace(lines.String(), "\"}\n{\"text\": \"", `\n`, 1))
	must.Refuse(New(saved))(t, "has changed since the run began")
	saved.Data.Pack, saved.Data.SHA256 = "no", ""
	if got := made(t, saved).Config.Data.Pack; got != "no" {
		t.Errorf("the pack is %q, want no", got)
	}
}
