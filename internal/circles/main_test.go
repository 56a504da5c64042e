package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module writes a module whose files have these contents, and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	files["go.mod"] = "module example\n\ngo 1.26\n"
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestRun(t *testing.T) {
	folder := module(t, map[string]string{
		// Three files in a circle through a method, a field of a generic type and a promoted method. A local variable, a
		// parameter and a test with the name of a function of top.go close none, and top.go belongs to no circle.
		"a/head.go":      "package a\n\ntype Head struct{ n int }\n\nfunc (h Head) Walk() int { return Foot[int]{}.sole + h.Stand() }\n\nfunc local(Top int) int { size := Top; return size }\n",
		"a/knee.go":      "package a\n\ntype knee struct{ Head }\n\nfunc bend(k knee) int { return k.Walk() }\n\nfunc (Head) Stand() int { return 1 }\n",
		"a/foot.go":      "package a\n\ntype Foot[T any] struct{ sole T }\n\nvar step = bend(knee{})\n",
		"a/top.go":       "package a\n\nfunc Top() int { return step + Head{}.Walk() }\n",
		"a/foot_test.go": "package a\n\nvar _ = Top()\n",

		// One way only.
		"b/low.go":  "package b\n\nconst low = 1\n",
		"b/high.go": "package b\n\nvar High = low\n",

		"c/lone.go": "package c\n",
	})
	table := "circle  files  edges  package\n     3      4      6  a\n     1      2      1  b\n"
	found := "a has a circle of 3 files:\n" +
		"    foot.go, head.go, knee.go\n" +
		"    head.go needs Stand from knee.go, which needs Head, Walk\n"
	for _, c := range []struct {
		limit       int
		want, fails string
	}{
		{0, table, ""},
		{3, "", ""},
		{2, found, "packages with a circle of more than 2 files: 1"},
	} {
		var out strings.Builder
		message := ""
		if err := run(&out, folder, c.limit); err != nil {
			message = err.Error()
		}
		if out.String() != c.want || message != c.fails {
			t.Errorf("with limit %d, it prints\n%s\nand fails with %q, want\n%s\nand %q", c.limit, &out, message, c.want, c.fails)
		}
	}
}

func TestRunFails(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"undefined: B":       {"a.go": "package a\n\nvar A = B\n", "b.go": "package a\n"},
		"expected 'package'": {"a.go": "packet a\n", "b.go": "package a\n"},
		"several files":      {"a.go": "package a\n"},
	} {
		if err := run(new(strings.Builder), module(t, files), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("run returns %v, want an error with %q", err, want)
		}
	}
}

func TestSome(t *testing.T) {
	for _, c := range [][2]string{{"a", "a"}, {"a b c d e", "a, b, c, d, e"}, {"a b c d e f g", "a, b, c, d, e and 2 more"}} {
		if got := some(strings.Fields(c[0])); got != c[1] {
			t.Errorf("some of %s: got %q, want %q", c[0], got, c[1])
		}
	}
}
