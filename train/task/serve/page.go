package serve

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"slices"
	"strconv"

	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/webpage"
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

// newPage makes the page, which is the same for all requests.
func (h *Handler) newPage() (http.Handler, error) {
	rule := h.model.Config.Task
	whole, top := h.does.Units == "", min(1, h.maxTop()) // texts with a label or a number often have several lines
	if whole {
		top = min(5, h.maxTop())
	}
	parts, labels := append(rule.Parts(rule.Example), ""), slices.Clone(h.does.Parts)
	if columns := h.model.Config.Data.Columns; len(columns) == 3 {
		for i := range labels {
			if _, err := strconv.Atoi(columns[i]); err != nil { // a name, not a number
				labels[i] = text.Escape(columns[i])
			}
		}
	}
	var body bytes.Buffer
	err := pageBody.Execute(&body, map[string]any{
		"Name": text.Escape(rule.Name), "About": text.Escape(rule.About), "Example": text.Escape(parts[0]),
		"Pairs": rule.Pairs, "Labels": labels, "Second": text.Escape(parts[1]),
		"Writes": h.does.Generate == nil, "Tokens": h.defaultTokens(), "MaxTokens": h.options.MaxTokens, "Temperature": h.model.Sampler().Temperature,
		"Beams": h.does.Beam > 1, "Beam": h.model.DefaultBeam(), "MaxBeam": h.options.MaxBeam,
		"Whole": whole, "Top": top, "MaxTop": h.maxTop(),
	})
	if err != nil {
		return nil, err
	}
	return webpage.Page{
		Title: "heed: " + text.Escape(rule.Name), Body: template.HTML(body.String()), Style: heatmap.Style + pageStyle,
		Scripts: []string{heatmap.Script, pageScript}, Live: true,
	}.Handler()
}

// try answers with the page.
func (h *Handler) try(w http.ResponseWriter, r *http.Request) error {
	h.deadline(w)
	h.page.ServeHTTP(w, r)
	return nil
}
