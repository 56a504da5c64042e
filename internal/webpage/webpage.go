// Package webpage makes web pages in one file. A page loads nothing from other addresses, and its policy forbids such
// requests. A page is light or dark, like the reader's system.
package webpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// A Page is a web page.
//
// Callers must insert data into Body with html/template: into elements, into attributes, or for scripts as JSON in a
// <script type="application/json">. Scripts must not depend on the data. Before that, escape characters that aren't
// printable, such as direction marks, with package text.
type Page struct {
	Title   string
	Body    template.HTML
	Style   string   // CSS that follows the CSS of all pages
	Charts  bool     // gives scripts heed.chart; see charts.js
	Scripts []string // JavaScript, run in this order after the body and heed.js
	Live    bool     // lets scripts request the page's own address
}

//go:embed style.css
var style string

//go:embed heed.js
var base string

//go:embed charts.js
var charts string

//go:embed uplot/uPlot.iife.min.js
var plot string

//go:embed uplot/uPlot.min.css
var plotStyle string

//go:embed uplot/LICENSE
var plotLicence string

var text = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{{.Title}}</title>
{{.Styles}}
</head>
<body>
<main>
{{.Body}}
</main>
{{.Elements}}
</body>
</html>
`))

// Write writes the page.
func (p Page) Write(w io.Writer) error {
	var elements strings.Builder
	styles := style
	if p.Charts {
		styles = plotStyle + style
		elements.WriteString("<!-- uPlot 1.6.32\n" + plotLicence + "\n-->\n")
	}
	for _, script := range p.scripts() {
		elements.WriteString("<script>" + script + "</script>\n")
	}
	return text.Execute(w, struct {
		Page
		Styles, Elements template.HTML
	}{p, template.HTML("<style>\n" + styles + p.Style + "</style>"), template.HTML(elements.String())})
}

// Handler returns a handler that serves the page. Other pages can't show it in a frame.
func (p Page) Handler() (http.Handler, error) {
	var whole bytes.Buffer
	if err := p.Write(&whole); err != nil {
		return nil, err
	}
	policy, length := p.Policy()+"; frame-ancestors 'none'", strconv.Itoa(whole.Len())
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Length", length)
		w.Write(whole.Bytes())
	}), nil
}

// Policy returns the page's Content-Security-Policy, which is also in the page.
func (p Page) Policy() string {
	scripts := ""
	for _, script := range p.scripts() {
		sum := sha256.Sum256([]byte(script))
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	if scripts == "" {
		scripts = " 'none'"
	}
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src 'unsafe-inline'; script-src" + scripts
	if p.Live {
		policy += "; connect-src 'self'"
	}
	return policy
}

func (p Page) scripts() []string {
	switch {
	case p.Charts:
		return append([]string{base, plot, charts}, p.Scripts...)
	case len(p.Scripts) > 0:
		return append([]string{base}, p.Scripts...)
	}
	return nil
}
