package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
)

// reported returns a page, and checks that it is complete HTML.
func reported(t *testing.T, path string) string {
	t.Helper()
	page := read(t, path)
	if !strings.HasPrefix(page, "<!DOCTYPE html>") || !strings.HasSuffix(page, "</html>\n") {
		t.Errorf("%s isn't a complete page", path)
	}
	return page
}

func TestReport(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "run")
	path := filepath.Join(dir, runfolder.ReportFile)
	out := succeed(t, small("--task=copy", "--out="+dir)...)
	must.Have(t, out, "\nReport: "+path+"\nDone in ")
	const examples = "confidence first" // part of the headings of examples
	trained := reported(t, path)
	must.Have(t, trained, examples, "Time per step")
	if got := succeed(t, "report", dir); got != "Report: "+path+"\n" || reported(t, path) != trained {
		t.Errorf("heed report prints %q, or its page differs from heed train's", got)
	}

	if err := os.Remove(filepath.Join(dir, runfolder.TimesFile)); err != nil { // as in older runs
		t.Fatal(err)
	}
	own := filepath.Join(base, "own.html")
	succeed(t, "report", dir, "--out="+own, "--no-examples")
	if page := reported(t, own); strings.Contains(page, examples) || strings.Contains(page, "Time per step") || !strings.Contains(page, "By length") {
		t.Error("the page has times or examples, or no table of lengths")
	}

	other := filepath.Join(base, "other")
	out = succeed(t, small("--task=brackets", "--out="+other, "--max-steps=15", "--no-examples")...)
	page := reported(t, filepath.Join(other, runfolder.ReportFile))
	if !strings.Contains(out, "\nReport: ") || !strings.Contains(page, "The run isn&#39;t finished") || strings.Contains(page, examples) {
		t.Errorf("after a limit, heed train prints %q, or its page has examples or doesn't say that the run isn't finished", out)
	}
	succeed(t, "train", "--resume="+other)
	must.Have(t, reported(t, filepath.Join(other, runfolder.ReportFile)), "Training stopped because", examples)

	both := filepath.Join(base, "both.html")
	succeed(t, "report", dir, other, "--out="+both)
	must.Have(t, reported(t, both), "<h1>2 runs</h1>", "task name")
}

// Training succeeds even if its report can't be written. A run without a step, or an interrupted one, gets no report.
func TestTrainingWithoutReport(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	blocked := filepath.Join(base, "blocked")
	var stdout bytes.Buffer
	blocker := writerFunc(func(b []byte) (int, error) {
		if bytes.HasPrefix(b, []byte("Stopped")) {
			os.MkdirAll(filepath.Join(blocked, runfolder.ReportFile, "in the way"), 0o777)
		}
		return stdout.Write(b)
	})
	fail(t, heedTo(t.Context(), blocker, small("--task=copy", "--out="+blocked)...), 0, "the run is saved, but its report can't be written", "heed report "+blocked)
	if !strings.Contains(stdout.String(), "Done in") || strings.Contains(stdout.String(), "Report:") {
		t.Errorf("heed train prints %q, want \"Done in\" but not \"Report:\"", stdout.String())
	}

	left := filepath.Join(blocked, "."+runfolder.ReportFile+".tmp-1") // left by a killed process
	write(t, left, "")
	must.Do(t, os.Chtimes(left, time.Now(), time.Now().Add(-time.Hour)))
	fail(t, heed("train", "--resume="+blocked), 1, "is finished")
	absent(t, left)

	short := filepath.Join(base, "short")
	succeed(t, small("--task=copy", "--out="+short, "--max-time=1ns")...)
	interrupted := filepath.Join(base, "interrupted")
	fail(t, heedContext(cancelled(t, 15), small("--task=copy", "--out="+interrupted)...), 1, "interrupted")
	for _, dir := range []string{short, interrupted} {
		absent(t, filepath.Join(dir, runfolder.ReportFile))
	}
	fail(t, heed("report", short), 1, "has no history", "heed train --resume "+short)
	succeed(t, "report", interrupted)
}

func TestReportWithoutData(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, file := "run", "moved.tsv"
	write(t, file, lines(200, func(i int) string { return fmt.Sprintf("okapi %d\tlabel%d", i, i%2) }))
	succeed(t, "train", "--task=classification", "--data="+file, "--out="+dir, "--dim=8", "--heads=1", "--layers=1", "--max-epochs=1")
	path := filepath.Join(dir, runfolder.ReportFile)
	must.Have(t, reported(t, path), "okapi", "label1")
	succeed(t, "report", dir, "--no-examples")
	if page := reported(t, path); strings.Contains(page, "okapi") || strings.Contains(page, file) || !strings.Contains(page, "label1") {
		t.Error("with --no-examples, the page has texts, the data file's name or no names of labels")
	}
	succeed(t, "report", dir, ran(t, "--task=copy"), "--no-examples", "--out=both.html")
	if page := reported(t, "both.html"); strings.Contains(page, file) || !strings.Contains(page, "data source units") {
		t.Error("with --no-examples, the comparison has the data file's name, or it lacks other settings of the data")
	}
	must.Do(t, os.Remove(file))
	fail(t, heed("eval", dir), 1, `"moved.tsv": no such file or directory, in the current folder; --data FILE`)
	for _, flags := range [][]string{nil, {"--no-examples"}} {
		c := heed(append([]string{"report", dir}, flags...)...)
		if fail(t, c, 0, "the report has no examples"); strings.Contains(c.stderr, "moved.tsv") != (flags == nil) || strings.Contains(c.stderr, "--data") {
			t.Errorf("standard error is %q, want the file's name unless --no-examples is given, and never --data", c.stderr)
		}
		if page := reported(t, path); strings.Contains(page, "okapi") || !strings.Contains(page, "There are no examples here: ") {
			t.Error("the page doesn't say why it has no examples")
		}
	}
}

func TestReportErrors(t *testing.T) {
	t.Parallel()
	dir, damaged := ran(t, "--task=copy"), copied(t, "--task=copy")
	write(t, filepath.Join(damaged, runfolder.HistoryFile), "{")
	fail(t, heed("report", ""), 2, "name is empty")
	fail(t, heed("report", damaged), 1, runfolder.HistoryFile)
	fail(t, heed("report", dir, t.TempDir(), "--out=a.html"), 1, "isn't a run folder")
	fail(t, heed("report", dir, "--out="+dir+"/run.html/"), 2, "ends in .html")
}
