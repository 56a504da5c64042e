package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

const pairModels = "../../train/model/testdata/pairs/"

// heed rank sorts arguments, lines of standard input and a column of a file alike.
func TestRank(t *testing.T) {
	dir, rows := pairModels+"bert-cross", filepath.Join(t.TempDir(), "rows.csv")
	write(t, rows, "name,body\nx,a dog\ny,\"who sat\non\"\nz,a cat\n")
	const all = "0.594533\twho sat\\non\n0.396836\ta cat\n0.393198\ta dog\n"
	prints(t, all, "rank", dir, "the cat", "a dog", "who sat\non", "a cat")
	prints(t, all, "rank", dir, "the cat", "--data", rows, "--column=body")
	prints(t, strings.SplitAfter(all, "\n")[0], "rank", dir, "the cat", "--data", rows, "--column=body", "--top=1")
	write(t, rows, "name,body\nx,a dog\ny,\n")
	if out := succeed(t, "rank", dir, "the cat", "--data", rows, "--column=body"); out != succeed(t, "rank", dir, "the cat", "a dog", "") {
		t.Errorf("an empty row: got %q", out)
	}
	write(t, rows, "name,body\nx,a dog\ny,\"who sat\non\"\nz,a cat\n")
	withText(t, "a dog\nwho sat on\na cat\n")
	prints(t, strings.Replace(all, "\\n", " ", 1), "rank", dir, "the cat")
	out := succeed(t, "rank", dir, "the cat", "a dog", "who sat\non", "--json")
	must.Have(t, out, `{"document":"who sat\non","index":1,"score":0.5945`, `{"document":"a dog","index":0,"score":0.393`)
	long := heed("rank", dir, "the cat", strings.Repeat("a dog ", 30), "a dog")
	if long.code != 0 || long.stderr != "heed: the query and 1 of 2 texts are together longer than the model's 28 symbols; the end was ignored\n" {
		t.Errorf("%+v", long)
	}
	bad := heed("rank", dir, "the cat", "a dog", "a\xff", "--json")
	if bad.code != 1 || !strings.HasPrefix(bad.stdout, `{"document":"a dog","index":0,"score":0.393`) || !strings.Contains(bad.stdout, `,"error":"`) {
		t.Errorf("%+v", bad)
	}
	must.Have(t, bad.stderr, "UTF-8", "there is no score of 1 of 2 texts")
	for args, want := range map[string]string{
		"rank DIR":                                      "takes a model folder and a query",
		"rank DIR q a --data ROWS":                      "as arguments or with --data, not both",
		"rank DIR q --column=body":                      "--column needs --data",
		"rank DIR q a --top=-1":                         "--top must be at least 1, or 0 for all, got -1",
		"rank LABELS q a":                               "only models that score two texts rank documents: use heed predict",
		"predict DIR a --labels=b":                      "only models of inference, which have a label that begins with entail",
		"predict LABELS a --several":                    "--template and --several are for --labels, which is missing",
		"predict LABELS a --labels=,":                   "--labels must have at least one label, got none",
		"predict LABELS a --labels=b --template=c":      `--template must have {} once, where the label goes, and no other braces, got "c"`,
		"predict LABELS a --labels=b --threshold=b=0.5": "--threshold is for the labels of the model, not for --labels",
		"predict LABELS a --labels=b --beam=2":          "--beam is for answers written symbol by symbol",
	} {
		rejected(t, heed(strings.Fields(strings.NewReplacer("DIR", dir, "ROWS", rows, "LABELS", pairModels+"bert-labels").Replace(args))...), 2, want)
	}
}

// heed predict --labels answers with the labels of the call, also for a file.
func TestPredictLabels(t *testing.T) {
	dir, rows := pairModels+"bert-labels", filepath.Join(t.TempDir(), "rows.csv")
	write(t, rows, "text,label\nthe cat sat,x\nwho,y\n")
	prints(t, "sport\nmusic\n", "predict", dir, "--labels=sport, politics,,music", "--template={} is music", "the cat sat", "who")
	prints(t, "sport\t0.09539\tpolitics\t0.08859\n", "predict", dir, "--labels=politics,sport", "--several", "--template={} example", "a dog")
	out := succeed(t, "predict", dir, "--labels=politics,sport", "--several", "--data", rows)
	begins(t, out, "text,label,answer,probability,answer_2,probability_2\nthe cat sat,x,")
	if strings.Count(out, "\n") != 3 {
		t.Error(out)
	}
}
