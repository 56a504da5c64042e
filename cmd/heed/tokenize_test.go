package main

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

// heed tokenize shows tokens, prints ids, and counts tokens. It escapes what a terminal may act on.
func TestTokenize(t *testing.T) {
	tok := must.Get(tokenizer.New(tokenizer.BPE, slices.Values([]string{"to be or not to be"}), 258))(t)
	var file bytes.Buffer
	must.Do(t, tokenizer.Write(&file, tok))
	run := spelled(t)
	t.Chdir(t.TempDir())
	const bpe, book = "tokenizer.json", "a\x1b\nbook.txt"
	write(t, bpe, file.String())
	write(t, book, "to be\n\nto be\n")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{bpe, "to é\x1b[2J", "", "t"}, "257\t\"to\"\n220\t\" \"\n127\t\"é\"\n102\t\"é\"\n215\t\"\\x1b\"\n58\t\"[\"\n17\t\"2\"\n41\t\"J\"\n\n\n83\t\"t\"\n"},
		{[]string{".", "--ids", "to", "", "t"}, "257\n\n83\n"},
		{[]string{bpe, "--count", book, book}, "9\ta\\x1b\\nbook.txt\n9\ta\\x1b\\nbook.txt\n"},
		{[]string{"--ids", "--", bpe, "-"}, "12\n"},
		{[]string{run, "ab"}, "0\t\"a\"\n1\t\"b\"\n"},
	} {
		prints(t, test.want, append([]string{"tokenize"}, test.args...)...)
	}
	withText(t, "\uFEFFto\r\n\nt\xff\n")
	c := heed("tokenize", "--ids", bpe)
	fail(t, c, 1, "standard input, line 3: not UTF-8: the byte at offset 1")
	if c.stdout != "257\n\n" {
		t.Errorf("prints %q, want the ids of two lines", c.stdout)
	}
	withText(t, "to be")
	prints(t, "3\n", "tokenize", "--count", bpe)
	fail(t, heed("tokenize"), 2, "heed tokenize takes a folder or file")
	fail(t, heed("tokenize", bpe, "t\xff"), 2, "text 1: not UTF-8")
	fail(t, heed("tokenize", bpe, "--ids", "--count"), 2, "can't be used together")
	fail(t, heed("tokenize", "none", "t"), 1, `tokenizer "none": no such file`)
	fail(t, heed("tokenize", bpe, "--count", "."), 1, "must be a regular file")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	if c := heedContext(ctx, "tokenize", bpe, "--count", book); c.code != 1 || c.stdout != "" {
		t.Errorf("after an interruption: got %+v, want nothing", c)
	}
}
