package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
)

// pngResolution is the resolution of a PNG in dots per inch. It keeps labels sharp on any screen.
const pngResolution = 192

func newAttention() *cobra.Command {
	var out, layer string
	cmd := &cobra.Command{
		Use:   "attention DIR INPUT",
		Short: "Show what a trained model attends to",
		Long: `Show what a trained model attends to while it answers an input, as a heat map for each head of each
layer. Each row of a map shows how much one position attends to the positions in the columns. If the
model has cross-attention, from the answer to the source, those layers come first.

Without --out, heed prints the maps. An HTML file is interactive: choose a head and a token with the
pointer, by touch or with the arrow keys to see what the token attends to. At first it shows the sharpest
head: the one whose rows have the lowest mean entropy. It also offers the mean over the heads of each
layer. Without scripts, the page shows the maps of all heads. A PNG can show Latin, Greek and Cyrillic
letters. SVG and HTML can show all letters of the viewer's fonts.
If the input is longer than the model's context, the maps show the part that the model reads, and
standard error has a note.`,
		Example: `  heed attention runs/reverse gorgonia
  heed attention runs/dates 'Thu, 7 March 2024' --layer cross --out dates.html`,
		Args: takes("a run folder and one input, in quotes if it has several words", cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error { return drawAttention(cmd, args[0], args[1], layer, out) },
	}
	baseFlag(cmd.Flags())
	cmd.Flags().StringVar(&out, "out", "", "file to write, .png, .svg or .html (default: print the maps)")
	cmd.Flags().StringVar(&layer, "layer", "", "show only layers whose name contains this text, such as cross or blocks.1")
	return cmd
}

// drawAttention draws the attention of the model in dir into the file out. Without --out, it prints the figure. It
// shows only layers whose name contains layer.
func drawAttention(cmd *cobra.Command, dir, input, layer, out string) error {
	if err := fileFlag(cmd.Flags(), "out", ".png", ".svg", ".html"); err != nil {
		return err
	}
	stdout, file := cmd.OutOrStdout(), &outFile{flag: "out", path: out, inputs: runFiles(dir, baseOf(cmd.Flags()))}
	if err := file.open(stdout); err != nil {
		return err
	}
	defer file.Close()
	m, err := openModel(cmd, dir)
	if err != nil {
		return err
	}
	a, err := m.Attention(input, layer)
	if err != nil {
		return wrongInput(err)
	}
	if m.Cuts(input) {
		noteCut(cmd.ErrOrStderr(), m, "the input is")
	}
	figure := figureOf(a, m.Config.Task.Name, m.Config.Describe().Predict == nil)
	if cmd.Context().Err() != nil {
		return errInterrupted
	}
	write := figureWriters[strings.ToLower(filepath.Ext(out))]
	if write == nil {
		var text bytes.Buffer
		if err := figure.WriteText(&text, widthOf(stdout)); err != nil {
			return err
		}
		_, err := text.WriteTo(stdout)
		return err
	}
	if err := file.write(cmd.Context(), func(w io.Writer) error { return write(figure, w) }); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, drawn(out, figure))
	return err
}

// figureOf returns a figure of a model's attention. The argument name is the name of the task. A model that embeds
// texts has no answers.
func figureOf(a *model.Attention, name string, answers bool) heatmap.Figure {
	f := heatmap.Figure{Title: fmt.Sprintf("%s: %s", name, shortened(a.Input)), Key: a.Key}
	if answers {
		f.Title += " → " + shortened(a.Answer)
	}
	for _, l := range a.Layers {
		f.Layers = append(f.Layers, heatmap.Layer(l))
	}
	return f
}

// shortened returns s for a title, quoted if needed. It cuts off the beginning of a long text.
func shortened(s string) string {
	const limit = 60
	if n := utf8.RuneCountInString(s); n > limit {
		s = "…" + string([]rune(s)[n-limit:])
	}
	return quoted(s)
}

// figureWriters maps the endings of files to functions that write a figure.
var figureWriters = map[string]func(f heatmap.Figure, w io.Writer) error{
	".png":  func(f heatmap.Figure, w io.Writer) error { return f.WritePNG(w, pngResolution) },
	".svg":  heatmap.Figure.WriteSVG,
	".html": heatmap.Figure.WriteHTML,
}

// drawn returns the line to print about a figure that was written to a file.
func drawn(path string, f heatmap.Figure) string {
	s := fmt.Sprintf("%s, drawn in %s", f.Title, text.Escape(path))
	if boxes := f.Boxes(); boxes != "" && strings.EqualFold(filepath.Ext(path), ".png") {
		s += fmt.Sprintf(", where □ stands for %q: use .svg or .html to see these characters", boxes)
	}
	return s
}
