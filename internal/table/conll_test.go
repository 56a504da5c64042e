package table

import (
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// TestReadCoNLL reads sentences of CoNLL.
func TestReadCoNLL(t *testing.T) {
	universal := "# sent_id = 1\n# text = vámonos al 10 000\n1-2\tvámonos\t_\t_\t_\n1\tvamos\tir\tVERB\t_\n2\tnos\tnosotros\tPRON\t_\n2.1\tx\tx\tX\t_\n3\t10 000\t_\tNUM\t_\n\n\n# sent_id = 2\n1\tal\t_\tADP\t_\n"
	for _, test := range []struct {
		name, file, content string
		columns             []string
		want, lines         string
		bad                 string
		badLine             int
	}{
		{name: "CoNLL 2003", file: "a.conll", content: "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP B-NP B-PER \n", want: `[["EU rejects" "B-ORG O"] ["Peter" "B-PER"]]`, lines: "[3 6]"},
		{name: "by number", file: "a.CONLL", content: "EU NNP B-NP B-ORG\n", columns: []string{"1", "2"}, want: `[["EU" "NNP"]]`},
		{name: "tabs, and lines of white space", file: "a.bio", content: "\t\nNew York\tB\r\nat\u00a0all\tO\r\n \t \r\n\r\nC D\tO\n", want: `[["New_York at_all" "B O"] ["C_D" "O"]]`, lines: "[2 6]"},
		{name: "CoNLL by its content", file: "eng.train", content: "-DOCSTART- O\nEU B\n-DOCSTART- O\nPeter B\n", want: `[["EU" "B"] ["Peter" "B"]]`, lines: "[2 4]"},
		{name: "comments with as many columns", file: "a.conll", content: "# page 7\n## part two\na B-X\n# O\nb O\n\n# end here\nc O\n", want: `[["a # b" "B-X O O"] ["c" "O"]]`, lines: "[3 8]"},
		{name: "tokens and comments with #", file: "a.iob2", content: "# id 1 domain=en\n\n# _ O\nx _ O\n# _ O\n\n#begin document\nx _ O", want: `[["# x #" "O O O"] ["x" "O"]]`, lines: "[3 8]"},
		{name: "CoNLL-U", file: "a.conllu", content: universal, want: `[["vamos nos 10_000" "VERB PRON NUM"] ["al" "ADP"]]`, lines: "[4 11]"},
		{name: "CoNLL-U by number", file: "a.conllu", content: universal, columns: []string{"3", "4"}, want: `[["ir nosotros _" "VERB PRON NUM"] ["_" "ADP"]]`},

		{name: "no tag", file: "a.iob", content: "EU\n", bad: "column 2 is empty or missing: the line has 1 column", badLine: 601},
		{name: "no tag on a later line", file: "a.iobes", content: "EU O\nrejects\nx", bad: "column 2 is empty or missing: the line has 1 column", badLine: 602},
		{name: "an empty token", file: "a.conll", content: "\tO\n", bad: "column 1 is empty or missing", badLine: 601},
		{name: "invalid UTF-8", file: "a.conll", content: "x O\ncaf\xe9 O\n", bad: "column 1 is not UTF-8: the byte at offset 3", badLine: 602},
		{name: "NUL", file: "a.conll", content: strings.Repeat("a b\n\n", look) + "x\x00 O\n", bad: "the token list (column 1) has a NUL character", badLine: 601 + 2*look},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.bad != "" {
				test.content = strings.Repeat("a b\nc d\n\n", 200) + test.content
			}
			table := must.Get(Read(writeFile(t, test.file, test.content), Options{Columns: test.columns, Known: taggedNames, Tagged: true}))(t)
			checkRows(t, table, test.want, test.lines, test.bad, test.badLine)
		})
	}
}

// TestCoNLLErrors checks the errors for whole files of CoNLL.
func TestCoNLLErrors(t *testing.T) {
	long := strings.Repeat("a", maxRow/2)
	for _, test := range []struct {
		name, file, content string
		columns             []string
		untagged            bool
		want                string
	}{
		{name: "not tagging", file: "a.conllu", content: "1\ta\tb\tc\n", untagged: true, want: "only the task tagging with units tokens reads such files"},
		{name: "the name of TSV", file: "a.txt", content: "a b c\nd e f\n\na b c\n", want: `lines 1, 2, 4: the tag list (column 2) is missing: the row has only 1 (fields between tabs); if the file has one token per line, let its name end in .conll`},
		{name: "the name of TSV, with tabs", file: "a.txt", content: "a\tb\tc\nd\te\tf\n\na\tb\tc\n", want: `as in data.columns 2,3 if it isn't; if the file has one token per line, let its name end in .conll`},
		{name: "names of columns", file: "a.conll", content: "a b c\n", columns: []string{"tokens", "tags"}, want: `so data.columns must be numbers from 1, such as 1,3, got "tokens"`},
		{name: "column 0", file: "a.conll", content: "a b\n", columns: []string{"0", "1"}, want: `numbers from 1, such as 1,2, got "0"`},
		{name: "no empty line", file: "a.conll", content: long + " O\n" + long + " O\n" + "a O\n", want: "line 2: the sentence up to this line has more than 4 MiB: check that an empty line ends each sentence"},
		{name: "no token", file: "a.conllu", content: "# a\n\n", want: "only empty lines"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := writeFile(t, test.file, test.content)
			_, err := Read(path, Options{Columns: test.columns, Known: taggedNames, Tagged: !test.untagged})
			checkError(t, err, path, test.want)
		})
	}
	path := writeFile(t, "a.conll", "a b\n")
	_, err := ReadParallel([]string{path, path}, Options{Known: taggedNames})
	checkError(t, err, path, "has sources and answers in one file")
}

// A file may be CoNLL by its content only if its rows are tagged, and only if the whole first cell is -DOCSTART-.
func TestDocStart(t *testing.T) {
	for _, test := range []struct {
		content string
		tagged  bool
		want    string
	}{
		{"-DOCSTART-\tx\na\ty\n", false, `[["-DOCSTART-" "x"] ["a" "y"]]`},
		{"-DOCSTART- a\tx\n", false, `[["-DOCSTART- a" "x"]]`},
		{"-DOCSTART-s a\tx y\n", true, `[["-DOCSTART-s a" "x y"]]`},
		{"\r\n-DOCSTART-\tx\r\na\ty\r\n", true, `[["a" "y"]]`},
	} {
		table, err := Read(writeFile(t, "a.tsv", test.content), Options{Known: taggedNames, Header: "no", Tagged: test.tagged})
		if err != nil {
			t.Errorf("%q: %v", test.content, err)
			continue
		}
		checkRows(t, table, test.want, "", "", 0)
	}
}

func TestCoNLLIsWrittenBack(t *testing.T) {
	conll := "-DOCSTART- -X- O\n\nEU NNP O\nrejects VBZ O \n\n \n# 1 2 3\nx X O\nonly\n\nU X O"
	for _, test := range []struct {
		name, file, content, want string
		columns                   []string
		bad                       int
	}{
		{name: "CoNLL", file: "a.conll", columns: []string{"2"}, content: conll, bad: 1,
			want: "-DOCSTART- -X- O _ _\n\nEU NNP O NNP! -0.5\nrejects VBZ O VBZ! -0.5\n\n \n# 1 2 3\nx X O _ _\nonly _ _\n\nU X O X! -0.5\n"},
		{name: "CoNLL-U", file: "a.conllu", content: "# a\r\n1-2\tab\t_\tX\r\n1\ta b\t_\tX\r\n2\tb\t_\tX\r\n2.1\tc\t_\tX\r\n\r\n# end\r\n",
			want: "# a\r\n1-2\tab\t_\tX\t_\t_\r\n1\ta b\t_\tX\ta_b!\t-0.5\r\n2\tb\t_\tX\tb!\t-0.5\r\n2.1\tc\t_\tX\t_\t_\r\n\r\n# end\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, bad := copyRows(t, writeFile(t, test.file, test.content), Options{Columns: test.columns, Known: taggedNames[:1], Tagged: true}, exclaimed, "answer", "n")
			if got != test.want || len(bad) != test.bad {
				t.Errorf("got %q\nwant %q; bad rows %v, want %d", got, test.want, bad, test.bad)
			}
		})
	}
}
