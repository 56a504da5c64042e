package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/task/judge"
)

// The scores of a file agree with the answers that heed eval writes.
func TestEvalData(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	dir, learned := spell(t, t.TempDir())
	folder := t.TempDir()
	path := filepath.Join(folder, "test.csv")
	words := []string{"a", "bc", "cd", "dab", "abcd", "ccc"}
	var rows strings.Builder
	rows.WriteString("id,word,pronunciation\n")
	for i, word := range words {
		fmt.Fprintf(&rows, "%d,%s,%s\n", i, word, strings.Join(strings.Split(strings.ToUpper(word), ""), " "))
	}
	rows.WriteString("6,bc,A A A A\n7,xa,A Q\n8,a," + strings.Repeat("A ", 600) + "\n9," + strings.Repeat("a", 600) + ",A\n")
	write(t, path, rows.String())

	answers := filepath.Join(folder, "answers.tsv")
	out := succeed(t, "eval", dir, "--data="+path, "--answers="+answers, "--beam=2")
	lines := strings.Split(read(t, answers), "\n")
	if len(lines) != 10 { // a header, 8 sources, and the empty string after the last line
		t.Fatalf("the answers are %q, want a header and 8 sources", lines)
	}
	right := 0
	for i, word := range append(words, "xa") {
		fields := strings.Split(lines[1+i], "\t")
		want := strings.TrimSpace(heed("predict", dir, "--beam=2", "--", word).stdout)
		if fields[0] != word || fields[1] != want {
			t.Errorf("line %d is %q, want the answer %q to %q", 2+i, fields, want, word)
		}
		if fields[2] == "true" {
			right++
		}
	}
	if fields := strings.Split(lines[2], "\t"); fields[0] != "bc" || strings.Join(fields[5:], "|") != "B C|A A A A" {
		t.Errorf("the line of bc is %q, want its references B C and A A A A", fields)
	}
	must.Have(t, out, fmt.Sprintf("(%d of 8 sources answered", right))
	must.Have(t, out, "the nearest references have ", "chrF: ", "BLEU: ",
		"Beyond the model: 1 source without an answer; 1 source with letters, or with mostly words, that training never saw; 1 reference with symbols or labels that training never saw; 1 reference longer than any answer of the model.")
	prints(t, out, "eval", dir, "--data="+path, "--columns=word,3", "--beam=2")

	// Without --data, heed eval scores the rows that were held out.
	validation := succeed(t, "eval", dir)
	if lines := strings.Split(validation, "\n"); len(lines) != 5 || !strings.HasPrefix(lines[0], "Val=") || !strings.HasPrefix(lines[1], "Exact: ") {
		t.Errorf("heed eval prints %q, want 4 lines that begin with Val= and Exact:", validation)
	}
	if got := heed("eval", dir, "--data="+learned); got.code != 0 || !strings.Contains(got.stderr, "the run was trained on") || !strings.Contains(got.stdout, "of 334 sources") {
		t.Errorf("for the file that was learned, heed eval prints %q and %q, want the score of 334 sources and a warning", got.stdout, got.stderr)
	}
	must.Do(t, os.Remove(learned))
	fail(t, heed("eval", dir), 1, "spelled.tsv", "--data FILE scores another file")
	prints(t, out, "eval", dir, "--data="+path, "--beam=2")
}

func TestEvalClassificationAndTagging(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		want    []string
	}{
		"classification": {"text,label\nthe cat,true\na dog,new\n", []string{" labels right; 95 % interval ", "precision", "new", "right ↓, answered →", "1 reference with symbols or labels that training never saw"}},
		"tagging":        {"tokens,tags\nthe cat,t c\na dog,a x\n", []string{" of 4 tags right; 95 % interval ", "with every tag right)", "1 reference with symbols or labels that training never saw"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := ran(t, append(dataFlags(t, name), "--task="+name)...)
			path := newFile(t, "test.csv", test.content)
			out := succeed(t, "eval", dir, "--data="+path)
			must.Have(t, out, test.want...)
			var scores judge.Scores
			if line := succeed(t, "eval", dir, "--data="+path, "--json"); json.Unmarshal([]byte(line), &scores) != nil || strings.Count(line, "\n") != 1 {
				t.Errorf("heed eval --json prints %q, want one line with an object", line)
			}
			if scores.Task != name || scores.Rows != 2 || scores.Loss != nil || scores.Beyond.UnknownReferences != 1 || !strings.Contains(out, fmt.Sprintf("Accuracy: %.4f", *scores.Value)) {
				t.Errorf("heed eval --json has %+v, want the accuracy of 2 rows, as in %s", scores, out)
			}
			page := filepath.Join(t.TempDir(), "test.html")
			prints(t, out, "eval", dir, "--data="+path, "--out="+page)
			must.Have(t, reported(t, page), name+": test.csv", "the cat", "Scores by class")
			must.Have(t, succeed(t, "eval", dir, "--json"), `"loss":`)
			fail(t, heed("eval", dir, "--data="+path, "--beam=2"), 2, "--beam is for answers written symbol by symbol")
			fail(t, heed("predict", dir, "--beam=2", "the cat"), 2, "--beam is for answers written symbol by symbol")

			write(t, path, test.content+strings.Repeat("the cat,\n", 3))
			fail(t, heed("eval", dir, "--data="+path), 2, "3 of 5 rows are bad; without --skip-bad")
			skipped := heed("eval", dir, "--data="+path, "--skip-bad")
			fail(t, skipped, 0, "left out 3 bad rows of 5")
			must.Have(t, skipped.stdout, test.want...)
		})
	}
}

// A model of one of Heed's own rules can be scored on a file too.
func TestEvalDataOfARule(t *testing.T) {
	t.Parallel()
	dir := ran(t, "--task=brackets")
	path := newFile(t, "test.tsv", "()\tyes\n(\tno\nx\tno\n")
	must.Have(t, succeed(t, "eval", dir, "--data="+path), "of 3 labels right; 95 % interval ", "Beyond the model: 1 source without an answer; 1 source with letters")
	answers := filepath.Join(t.TempDir(), "answers.tsv")
	succeed(t, "eval", dir, "--answers="+answers)
	if lines := strings.Count(read(t, answers), "\n"); lines != 61 {
		t.Errorf("the answers to the validation set have %d lines, want a header and 60", lines)
	}
}
