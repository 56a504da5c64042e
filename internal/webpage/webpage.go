// Package webpage makes web pages that are whole in one file: they ask no other address for anything, and their policy
// forbids it. They are light or dark as the reader's system is.
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

// A Page is a page that Write writes.
//
// Where its parts have data in them, html/template has put them there: in elements, in attributes, and for scripts as
// JSON in a <script type="application/json">. Scripts are the same whatever the data are. What isn't printable, such as
// marks that turn the direction of text around, is escaped before, by package text.
type Page struct {
	Title   string
	Body    template.HTML
	Style   string   // of this page, after the style that all have
	Charts  bool     // scripts have heed.chart, as charts.js says
	Scripts []string // run in this order when the body is there, after heed.js
	Live    bool     // scripts may ask the address that the page came from
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

// Handler returns what answers requests with the page, which no other page may have in a frame.
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

// Policy returns the page's Content-Security-Policy, which it has in itself.
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
