// Package docs tests that the code in the documentation runs.
package docs

import (
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// pages returns the pages that users read.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*.md")
	if err != nil || len(found) == 0 {
		t.Fatalf("found the pages %v, error %v", found, err)
	}
	return append(found, "../README.md", "../examples/README.md")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must.Do(t, err)
	return string(text)
}

// TestGo checks that each Go block of a page occurs in a file that the page links to: a program of examples/, or a test
// file whose Examples all run. The file may indent the whole block.
func TestGo(t *testing.T) {
	file := regexp.MustCompile(`\]\(((?:[^)#]*_test|[^)#]*examples/[^)#]*)\.go)\)`)
	blocks := 0
	for _, page := range pages(t) {
		text := read(t, page)
		for _, after := range strings.Split(text, "```go\n")[1:] {
			blocks++
			block, _, _ := strings.Cut(after, "```\n")
			found := false
			for _, link := range file.FindAllStringSubmatch(text, -1) {
				path := filepath.Join(filepath.Dir(page), link[1])
				if shows(read(t, path), block) {
					found = true
					checkExamples(t, path)
				}
			}
			if !found {
				t.Errorf("%s: no test or example that the page links to has these lines:\n%s", page, block)
			}
		}
	}
	if blocks < 15 {
		t.Errorf("found %d Go blocks, want 15 or more", blocks)
	}
}

// shows reports whether a source has the lines of a block, all indented by the same number of additional tabs.
func shows(source, block string) bool {
	for range 5 {
		if strings.Contains("\n"+source, "\n"+block) {
			return true
		}
		lines := strings.SplitAfter(block, "\n")
		for i, line := range lines {
			if strings.TrimSpace(line) != "" {
				lines[i] = "\t" + line
			}
		}
		block = strings.Join(lines, "")
	}
	return false
}

// checkExamples checks that every Example of a file has an output, because go test doesn't run an Example without one.
func checkExamples(t *testing.T, path string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	must.Do(t, err)
	for _, e := range doc.Examples(parsed) {
		if e.Output == "" && !e.EmptyOutput {
			t.Errorf("%s: Example%s has no output, and doesn't run", path, e.Name)
		}
	}
}

// TestLinks checks the pages' links to files and to headings.
func TestLinks(t *testing.T) {
	links := regexp.MustCompile(`(?:\]\(|src=")([^)"\s]*)[)"]`)
	headings := regexp.MustCompile("(?m)^#+ (.*)$")
	for _, page := range append(pages(t), "../ARCHITECTURE.md", "../CONTRIBUTING.md") {
		for _, link := range links.FindAllStringSubmatch(read(t, page), -1) {
			if strings.HasPrefix(link[1], "https://") {
				continue
			}
			file, anchor, anchored := strings.Cut(link[1], "#")
			path := page
			if file != "" {
				path = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			named := func(heading []string) bool { return anchor == slug(heading[1]) }
			if anchored && !slices.ContainsFunc(headings.FindAllStringSubmatch(read(t, path), -1), named) {
				t.Errorf("%s: %s has no heading for #%s", page, path, anchor)
			}
		}
	}
}

// slug returns the anchor of a heading: small letters, digits and hyphens.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case strings.ContainsRune("'’`,.:;()?!–—", r):
			return -1
		}
		return r
	}, strings.ToLower(heading))
}
