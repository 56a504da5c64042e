package webpage

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// written returns the content of a page.
func written(t *testing.T, p Page) string {
	t.Helper()
	var s strings.Builder
	if err := p.Write(&s); err != nil {
		t.Fatal(err)
	}
	return s.String()
}

var scriptElements = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

func TestPolicyAllowsThePagesScriptsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		page    Page
		scripts int
	}{
		"none":     {Page{Title: "a"}, 0},
		"own":      {Page{Scripts: []string{"let a = 1 < 2;\n", "a;"}}, 3},
		"charts":   {Page{Charts: true}, 3},
		"all live": {Page{Charts: true, Scripts: []string{"heed;"}, Live: true}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			content := written(t, c.page)
			policy := html.UnescapeString(regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(content)[1])
			if policy != c.page.Policy() {
				t.Errorf("the page has the policy %q, Policy returns %q", policy, c.page.Policy())
			}
			directives := map[string]string{}
			for _, directive := range strings.Split(policy, "; ") {
				key, value, _ := strings.Cut(directive, " ")
				directives[key] = value
			}
			var hashes []string
			for _, script := range scriptElements.FindAllStringSubmatch(content, -1) {
				sum := sha256.Sum256([]byte(script[1]))
				hashes = append(hashes, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
			}
			if len(hashes) != c.scripts || strings.Count(content, "<script") != c.scripts {
				t.Fatalf("the page has %d scripts, want %d", len(hashes), c.scripts)
			}
			if hashes == nil {
				hashes = []string{"'none'"}
			}
			if got := strings.Fields(directives["script-src"]); !slices.Equal(got, hashes) {
				t.Errorf("script-src is %q, want the scripts' hashes %q", got, hashes)
			}
			if directives["default-src"] != "'none'" || (directives["connect-src"] == "'self'") != c.page.Live {
				t.Errorf("the policy is %q, want default-src 'none', and connect-src 'self' only if the page is live", policy)
			}
		})
	}
}

// TestPageIsWhole checks that a page contains no other address, except uPlot's in a comment, and that no script turns
// text into markup or code.
func TestPageIsWhole(t *testing.T) {
	content := strings.Replace(written(t, Page{Charts: true}), "/*! https://github.com/leeoniya/uPlot (v1.6.32) */", "", 1)
	must.Lack(t, content, "http:", "https:", "src=", "url(", "@import", "import(", "fetch(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function")
	if hrefs := regexp.MustCompile(`href="[^"]*"`).FindAllString(content, -1); !slices.Equal(hrefs, []string{`href="data:,"`}) {
		t.Errorf("the page has the links %q, want only the empty icon", hrefs)
	}
	must.Have(t, content, "Copyright (c) 2022 Leon Sorokin") // uPlot's licence
}

// TestHostileDataDoNothing checks that hostile data can't end an element, wherever a template inserts the data.
func TestHostileDataDoNothing(t *testing.T) {
	body := template.Must(template.New("").Parse(`<p title="{{.}}">{{.}}</p><script type="application/json" id="data">{{.}}</script>`))
	for _, data := range []string{
		`</script><script>alert(1)</script>`, `<!--<script>`, `" onmouseover="alert(1)`, `'>"><img src=x onerror=alert(1)>`, "\u2028\u2029", `]]>`, `\u003c/script>`, "</title></style>", "\x00\xff",
	} {
		var s strings.Builder
		if err := body.Execute(&s, data); err != nil {
			t.Fatal(err)
		}
		content := written(t, Page{Title: data, Body: template.HTML(s.String())})
		tags := regexp.MustCompile(`<[!/a-z]+`).FindAllString(content, -1)
		want := regexp.MustCompile(`<[!/a-z]+`).FindAllString(written(t, Page{Body: `<p></p><script type="application/json"></script>`}), -1)
		if !slices.Equal(tags, want) {
			t.Errorf("%q: the page's tags are %q, want %q", data, tags, want)
		}
		if !regexp.MustCompile(`<p title="[^"<>]*">`).MatchString(content) {
			t.Errorf("%q: the data end the attribute title: %s", data, s.String())
		}
	}
}
