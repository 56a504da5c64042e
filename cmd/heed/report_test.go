package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/train/task"
)

// reported returns a run's page, and checks that it is one.
func reported(t *testing.T, path string) string {
	t.Helper()
	page := read(t, path)
	if !strings.HasPrefix(page, "<!DOCTYPE html>") || !strings.HasSuffix(page, "</html>\n") {
		t.Errorf("%s is no whole page", path)
	}
	return page
}

func TestReport(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "run")
	path := filepath.Join(dir, task.ReportFile)
	out := succeed(t, small("--task=copy", "--out="+dir)...)
	if !strings.Contains(out, "\nReport: "+path+"\nDone in ") {
		t.Errorf("heed train prints %q", out)
	}
	const examples = "confidence first" // right or wrong
	trained := reported(t, path)
	if !strings.Contains(trained, examples) || !strings.Contains(trained, "Time per step") {
		t.Error("the page of a training has no examples, or no times")
	}
	if got := succeed(t, "report", dir); got != "Report: "+path+"\n" || reported(t, path) != trained {
		t.Errorf("heed report prints %q, and the page isn't what heed train made", got)
	}

	if err := os.Remove(filepath.Join(dir, task.TimesFile)); err != nil { // as in older runs
		t.Fatal(err)
	}
	own := filepath.Join(base, "own.html")
	succeed(t, "report", dir, "--out="+own, "--no-examples")
	if page := reported(t, own); strings.Contains(page, examples) || strings.Contains(page, "Time per step") || !strings.Contains(page, "By length") {
		t.Error("without times and examples, the page has them, or no table of lengths")
	}

	other := filepath.Join(base, "other")
	out = succeed(t, small("--task=brackets", "--out="+other, "--max-steps=15", "--no-examples")...)
	page := reported(t, filepath.Join(other, task.ReportFile))
	if !strings.Contains(out, "\nReport: ") || !strings.Contains(page, "The run isn&#39;t finished") || strings.Contains(page, examples) {
		t.Errorf("a limit ended training, which prints %q", out)
	}
	succeed(t, "train", "--resume="+other)
	if page := reported(t, filepath.Join(other, task.ReportFile)); !strings.Contains(page, "Training stopped because") || !strings.Contains(page, examples) {
		t.Error("the page isn't that of the run that has gone on")
	}

	both := filepath.Join(base, "both.html")
	succeed(t, "report", dir, other, "--out="+both)
	if page := reported(t, both); !strings.Contains(page, "<h1>2 runs</h1>") || !strings.Contains(page, "task name") {
		t.Error("the page doesn't compare the runs")
	}
}

// A report that can't be made is no reason for a training to fail, and one that isn't due isn't made.
func TestTrainingWithoutReport(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	blocked := filepath.Join(base, "blocked")
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), small("--task=copy", "--out="+blocked), writerFunc(func(b []byte) (int, error) {
		if bytes.HasPrefix(b, []byte("Stopped")) {
			os.MkdirAll(filepath.Join(blocked, task.ReportFile, "in the way"), 0o777)
		}
		return stdout.Write(b)
	}), &stderr)
	fail(t, called{code, "", stderr.String()}, 0, "the run is whole, but not its report", "heed report "+blocked)
	if !strings.Contains(stdout.String(), "Done in") || strings.Contains(stdout.String(), "Report:") {
		t.Errorf("it prints %q", stdout.String())
	}

	left := filepath.Join(blocked, "."+task.ReportFile+".tmp-1") // by a kill
	write(t, left, "")
	fail(t, heed("train", "--resume="+blocked), 1, "is finished")
	if _, err := os.Stat(left); err == nil {
		t.Error("a page that is half-written stays")
	}

	short := filepath.Join(base, "short")
	succeed(t, small("--task=copy", "--out="+short, "--max-steps=5")...)
	interrupted := filepath.Join(base, "interrupted")
	fail(t, heedContext(cancelled(t, 15), small("--task=copy", "--out="+interrupted)...), 1, "interrupted")
	for _, dir := range []string{short, interrupted} {
		if _, err := os.Stat(filepath.Join(dir, task.ReportFile)); err == nil {
			t.Errorf("there is a page in %s", dir)
		}
	}
	fail(t, heed("report", short), 1, "has no history", "heed train --resume "+short)
	succeed(t, "report", interrupted)
}

func TestReportWithoutData(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, file := "run", "moved.tsv"
	var rows strings.Builder
	for i := range 200 {
		fmt.Fprintf(&rows, "okapi %d\tlabel%d\n", i, i%2)
	}
	write(t, file, rows.String())
	succeed(t, "train", "--task=classification", "--data="+file, "--out="+dir, "--dim=8", "--heads=1", "--layers=1", "--max-epochs=1")
	path := filepath.Join(dir, task.ReportFile)
	if page := reported(t, path); !strings.Contains(page, "okapi") || !strings.Contains(page, "label1") {
		t.Error("the page of a training has no examples of its file")
	}
	succeed(t, "report", dir, "--no-examples")
	if page := reported(t, path); strings.Contains(page, "okapi") || !strings.Contains(page, "label1") {
		t.Error("without examples the page has texts, or no names of labels")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	fail(t, heed("eval", dir), 1, `"moved.tsv": no such file or directory, as seen from the folder that heed is called in; --data FILE`)
	for _, flags := range [][]string{nil, {"--no-examples"}} {
		c := heed(append([]string{"report", dir}, flags...)...)
		if fail(t, c, 0, "the report has no examples"); strings.Contains(c.stderr, "moved.tsv") != (flags == nil) || strings.Contains(c.stderr, "--data") {
			t.Errorf("standard error is %q", c.stderr)
		}
		if page := reported(t, path); strings.Contains(page, "okapi") || !strings.Contains(page, "There are no examples here: ") {
			t.Error("the page doesn't say why it has no examples")
		}
	}
}

func TestReportErrors(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir, damaged := ran(t, "--task=copy"), copied(t, "--task=copy")
	write(t, filepath.Join(damaged, task.HistoryFile), "{")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no folder":       {nil, 2, "one run folder or several, got none"},
		"an empty name":   {[]string{""}, 2, "name is empty"},
		"several":         {[]string{dir, dir}, 2, "needs --out"},
		"no page":         {[]string{dir, "--out=a.png"}, 2, "ends in .html, got"},
		"no run":          {[]string{base}, 1, "isn't a run folder"},
		"one is no run":   {[]string{dir, base, "--out=a.html"}, 1, "isn't a run folder"},
		"damaged":         {[]string{damaged}, 1, task.HistoryFile},
		"no such place":   {[]string{dir, "--out=" + filepath.Join(base, "none", "a.html")}, 1, "none"},
		"a folder's name": {[]string{dir, "--out=" + base + "/run.html/"}, 2, "ends in .html"},
		"an unknown flag": {[]string{dir, "--example"}, 2, "lists the flags"},
	} {
		t.Run(name, func(t *testing.T) { fail(t, heed(append([]string{"report"}, c.args...)...), c.code, c.want) })
	}
}
