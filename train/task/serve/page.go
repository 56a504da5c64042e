package serve

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"strconv"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/internal/page"
	"github.com/heed-go/heed/internal/printable"
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string

	pageBody = template.Must(template.New("page").Parse(pageText))
)

// A servedPage is the page to try a service with, and its Content-Security-Policy.
type servedPage struct {
	content []byte
	policy  string
}

// newPage makes the page, which depends on nothing that is asked.
func (h *Handler) newPage() (p servedPage, err error) {
	rule := h.model.Config.Task
	var body bytes.Buffer
	err = pageBody.Execute(&body, map[string]any{
		"Name": printable.Text(rule.Name), "About": printable.Text(rule.About), "Example": printable.Text(rule.Example),
		"Writes": rule.Kind == data.KindText, "Tokens": h.defaultTokens(), "MaxTokens": h.options.MaxTokens,
		"Beams": rule.Kind == data.KindPairs, "MaxBeam": h.options.MaxBeam,
	})
	if err != nil {
		return p, err
	}
	whole := page.Page{
		Title: "heed: " + printable.Text(rule.Name), Body: template.HTML(body.String()), Style: heatmap.Style + pageStyle,
		Scripts: []string{heatmap.Script, pageScript}, Live: true,
	}
	var content bytes.Buffer
	if err := whole.Write(&content); err != nil {
		return p, err
	}
	return servedPage{content.Bytes(), whole.Policy() + "; frame-ancestors 'none'"}, nil
}

// try answers with the page.
func (h *Handler) try(w http.ResponseWriter, _ *http.Request) error {
	h.deadline(w)
	w.Header().Set("Content-Security-Policy", h.page.policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(h.page.content)))
	w.Write(h.page.content)
	return nil
}
