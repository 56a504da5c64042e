package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// heed search prints the nearest rows, from arguments and from standard input, and keeps the vectors.
func TestSearch(t *testing.T) {
	dir, out := publishedFolder(t, "llama-states"), t.TempDir()
	rows, objects := filepath.Join(out, "rows.csv"), filepath.Join(out, "rows.jsonl")
	write(t, rows, "id,body\n1,first text\n2,\"second, longer\x1b\"\n3,third\n")
	write(t, objects, `{"body": "first text", "id": 1}`+"\n"+`{"body": "third", "id": 3}`+"\n")
	first := succeed(t, "search", dir, "--data", rows, "--column=body", "third")
	if lines := strings.Split(first, "\n"); len(lines) != 4 || lines[0] != "1.0000\t3\tthird" || !strings.Contains(first, "\t2\tsecond, longer\\x1b\n") {
		t.Errorf("the rows are %q", first)
	}
	must.Have(t, read(t, rows+".vectors.npy"), "(3, 16)")
	prints(t, first, "search", dir, "--data", rows, "--header=yes", "--column=2", "third")
	prints(t, "third:\n1.0000\t3\tthird\nfirst text:\n1.0000\t1\tfirst text\n", "search", dir, "--data", rows, "--column=body", "--top=1", "third", "first text")
	withText(t, "third\n")
	prints(t, "third:\n"+first, "search", dir, "--data", rows, "--column=body")
	for file, want := range map[string]string{
		rows:    `"line":4,"text":"third","row":{"body":"third","id":"3"}}]}`,
		objects: `"line":2,"text":"third","row":{"body":"third","id":3}}]}`,
	} {
		prints(t, `{"query":"third","rows":[{"score":1,`+want+"\n", "search", dir, "--data", file, "--column=body", "--json", "--top=1", "third")
	}
	prints(t, "1.0000\t{\"body\": \"third\", \"id\": 3}\n", "search", dir, "--data", objects, "--column=body", "--top=1", "third")
	pets := newFile(t, "pets.csv", "name,body\nx,a dog\ny,who sat on\nz,a cat\n"+lines(60, func(int) string { return "d,a dog" }))
	more := newFile(t, "more.csv", "name,body\n"+lines(130, func(i int) string { return strings.Repeat("z", i%25+1) + ",zzz" }))
	prints(t, "0.5945\ty\twho sat on\n0.3968\tz\ta cat\n", "search", dir, "--data", pets, "--column=body", "--rank", pairModels+"bert-cross", "--top=2", "the cat")
	all := succeed(t, "search", dir, "--data", more, "--column=body", "--rank", pairModels+"bert-cross", "--top=110", "the cat", "zzz")
	if n := strings.Count(all, "\n"); n != 2*111 {
		t.Errorf("%d lines, want 2 queries with 110 rows each", n)
	}
	damaged := filepath.Join(t.TempDir(), "damaged") // it can't read dogs
	must.Do(t, os.CopyFS(damaged, os.DirFS(pairModels+"bert-cross")))
	write(t, filepath.Join(damaged, "tokenizer.json"), strings.Replace(read(t, pairModels+"bert-cross/tokenizer.json"), `"dog": 8`, `"dog": 99`, 1))
	for flag, want := range map[string]string{"--top=1": "0.5945\ty\twho sat on\n", "--json": `{"query":"the cat","rows":[{"score":0.594`} {
		c := heed("search", dir, "--data", pets, "--column=body", "--rank", damaged, flag, "the cat")
		if c.code != 1 || !strings.HasPrefix(c.stdout, want) || !strings.Contains(c.stderr, "pets.csv, line 2: \"a dog\": the tokenizer's id 99 is beyond") || !strings.Contains(c.stderr, "61 rows can't be read by the model of --rank") || strings.Count(c.stderr, "\n") != 6 {
			t.Errorf("%s: status %d, %s, %s", flag, c.code, c.stdout, c.stderr)
		}
		if n := strings.Count(c.stdout, `,"error":"the tokenizer's id 99`); n != 61 && flag == "--json" {
			t.Errorf("%d rows have errors, want 61", n)
		}
	}
	list := newFile(t, "list.tsv", "third\tx\n")
	must.Have(t, succeed(t, "search", dir, "--data", list, "--header=no", "--column=1", "--json", "third"), `"row":["third","x"]`)
	write(t, rows+".vectors.npy", "mine")
	c := heed("search", dir, "--data", rows, "--column=body", "third")
	if c.code != 0 || c.stdout != first || !strings.Contains(c.stderr, "the vectors aren't kept") {
		t.Errorf("with another file in place of the vectors: status %d, %q, %q", c.code, c.stdout, c.stderr)
	}
	for args, want := range map[string]string{
		"search DIR a":                          "--data must be the file to search",
		"search DIR --data ROWS --top=0 a":      "--top must be at least 1, got 0",
		"search DIR --data ROWS --encoding=x a": "--encoding",
		"search DIR --data ROWS --rank=OTHER a": "only models that score two texts rank documents",
		"search OTHER --data ROWS a":            "only models of kind embed or mlm embed texts",
	} {
		call := strings.Fields(strings.NewReplacer("DIR", dir, "OTHER", publishedFolder(t, "llama"), "ROWS", rows).Replace(args))
		rejected(t, heed(call...), 2, want)
	}
	fail(t, heed("search", dir, "--data", rows, "--column=subject", "a"), 1, "isn't in the header")
	late := newFile(t, "late.csv", "body\na\n")
	fail(t, heed("search", dir, "--data", late, "--rank=nowhere", "a"), 1, "nowhere: there is no such folder")
	if _, err := os.Stat(late + ".vectors.npy"); err == nil {
		t.Error("heed search embedded the texts before it opened the model that ranks")
	}
}
