package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// TestDocs checks that every flag that the documentation gives to heed exists. In blocks of shell code, it also parses
// the flags' values.
func TestDocs(t *testing.T) {
	pages := must.Get(filepath.Glob("../../docs/*.md"))(t)
	blocks := regexp.MustCompile("(?s)\n```([a-z]*)\n(.*?)\n```")
	inline := regexp.MustCompile("`([^`\n]+)`")
	calls := 0
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../examples/README.md") {
		content := must.Get(os.ReadFile(page))(t)
		text := string(content)
		var shell, inside []string
		for _, block := range blocks.FindAllStringSubmatch(text, -1) {
			if block[1] == "" || block[1] == "bash" {
				shell = append(shell, strings.Split(strings.ReplaceAll(block[2], "\\\n", ""), "\n")...)
			}
		}
		for _, code := range inline.FindAllStringSubmatch(blocks.ReplaceAllString(text, ""), -1) {
			inside = append(inside, code[1])
		}
		for i, line := range append(shell, inside...) {
			if call := callOf(line); call != nil {
				calls++
				checkCall(t, page, line, call, i < len(shell) && !strings.Contains(line, "[")) // a line with [ is a synopsis
			}
		}
	}
	if calls < 30 {
		t.Errorf("found %d calls, want at least 30", calls)
	}
}

var (
	word    = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	program = regexp.MustCompile(`^(?:\./|.*/)?heed$`)
)

// callOf returns the words of a line after the command heed, up to a comment, a redirection or another end of the call.
// It returns nil if the line doesn't call heed.
func callOf(line string) []string {
	words := word.FindAllString(line, -1)
	for i, w := range words {
		if !program.MatchString(w) || i+1 < len(words) && strings.HasPrefix(words[i+1], "-") {
			continue
		}
		var call []string
		for _, w := range words[i+1:] {
			if strings.HasPrefix(w, "#") || w == ">" || w == "<" || w == "|" || w == "&&" || w == "&" || w == "…" {
				break
			}
			call = append(call, strings.Trim(w, `'",`))
		}
		return call
	}
	return nil
}

// checkCall checks that the flags of a call exist. If whole is true, it also parses their values.
func checkCall(t *testing.T, page, line string, call []string, whole bool) {
	cmd, rest, err := newRoot(nil).Find(call)
	if err != nil {
		t.Errorf("%s: %s: %v", page, line, err)
		return
	}
	if cmd.Name() == "heed" { // no command, but a folder named heed, for example
		return
	}
	cmd.InitDefaultHelpFlag()
	if i := slices.Index(rest, "--"); i >= 0 && cmd.Name() == "sweep" {
		if _, err := variedFlags(rest[i+1:]); err != nil && whole {
			t.Errorf("%s: %s: %v", page, line, err)
		}
		rest = rest[:i]
	}
	for _, w := range rest {
		name, isFlag := strings.CutPrefix(strings.Trim(w, "[]"), "--")
		name, _, _ = strings.Cut(name, "=")
		if isFlag && cmd.Flags().Lookup(name) == nil {
			t.Errorf("%s: %s: there is no --%s", page, line, name)
		}
	}
	if !whole {
		return
	}
	if err := cmd.Flags().Parse(rest); err != nil {
		t.Errorf("%s: %s: %v", page, line, err)
	}
}
