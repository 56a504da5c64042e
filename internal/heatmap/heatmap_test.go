package heatmap

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"gonum.org/v1/plot/vg"

	"github.com/heed-go/heed/internal/must"
)

// small returns a figure with two heads, rows a and b, and columns x, y and z.
func small() Figure {
	return Figure{Title: "title", Key: "key", Layers: []Layer{{
		Name: "layer", Rows: []string{"a", "b"}, Columns: []string{"x", "y", "z"},
		Heads: [][]float32{{1, 0, 0, 0.5, 0.3, 0.2}, {0, 0, 1, 0.04, 0.06, 0.9}},
	}}}
}

// even returns a figure of one layer in which all weights are equal.
func even(rows, columns []string, heads int) Figure {
	l := Layer{Rows: rows, Columns: columns}
	for range heads {
		weights := make([]float32, len(rows)*len(columns))
		for i := range weights {
			weights[i] = 1 / float32(len(columns))
		}
		l.Heads = append(l.Heads, weights)
	}
	return Figure{Layers: []Layer{l}}
}

func letters(n int) []string { return strings.Split(strings.Repeat("m", n), "") }

func printed(t *testing.T, f Figure, width int) string {
	t.Helper()
	var out strings.Builder
	must.Do(t, f.WriteText(&out, width))
	return out.String()
}

func TestWriteText(t *testing.T) {
	for _, test := range []struct {
		name  string
		width int
		want  string
	}{
		{"side by side", 40, `
  head 0     head 1
  x y z      x y z
a ██       a     ██
b ▓▓▒▒░░   b   ░░██
`}, {"one below the other", 18, `
  head 0
  x y z
a ██
b ▓▓▒▒░░

  head 1
  x y z
a     ██
b   ░░██
`}, {"narrow cells", 5, `
  head 0
  xyz
a █
b ▓▒░

  head 1
  xyz
a   █
b  ░█
`}, {"in bands", 4, `
  head 0
  xy
a █
b ▓▒
  head 0
  z
a
b ░

  head 1
  xy
a
b  ░
  head 1
  z
a █
b █
`}} {
		t.Run(test.name, func(t *testing.T) {
			want := "title\nkey\n" + shadesKey + "\n\nlayer" + test.want
			if got := printed(t, small(), test.width); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestWriteTextNoRoom checks that a band has one column, even if the terminal is too narrow for it.
func TestWriteTextNoRoom(t *testing.T) {
	for _, width := range []int{-1, 0, 2, 3} {
		if got := printed(t, small(), width); got != printed(t, small(), 3) || strings.Count(got, "head 0\n") != 3 {
			t.Errorf("in %d columns: got\n%s\nwant three bands, as in 3 columns", width, got)
		}
	}
}

// TestWriteTextWideLabels checks that the columns stay aligned if labels are two or more terminal columns wide.
func TestWriteTextWideLabels(t *testing.T) {
	f := even([]string{"文", "é"}, []string{"中", "a"}, 1)
	f.Layers[0].Heads[0] = []float32{1, 0, 0, 1}
	want := "\n   head 0\n   中a\n文 ██\né    ██\n"
	for _, width := range []int{80, 8, 7} { // 7 and 8 are narrow: 中 can't be cut
		if got := printed(t, f, width); got != shadesKey+"\n"+want {
			t.Errorf("in %d columns: got\n%s\nwant\n%s", width, got, want)
		}
	}
}

// TestWriteTextWidth checks that no line is too wide, if the width is enough for one cell.
func TestWriteTextWidth(t *testing.T) {
	for width := 10; width < 90; width += 7 {
		for _, heads := range []int{1, 3, 8} {
			for _, n := range []int{1, 9, 70} {
				for i, line := range strings.Split(printed(t, even(letters(n), letters(n), heads), width), "\n") {
					if w := uniseg.StringWidth(line); i > 0 && w > width {
						t.Fatalf("%d heads, %d positions: line %q takes %d columns, want at most %d", heads, n, line, w, width)
					}
				}
			}
		}
	}
}

func TestShade(t *testing.T) {
	nan := float32(math.NaN())
	for weight, want := range map[float32]string{0: " ", 0.049: " ", 0.05: "░", 0.25: "▒", 0.5: "▓", 0.75: "█", 1: "█", 1.0000001: "█", nan: "?"} {
		if got := shade(weight); got != want {
			t.Errorf("the shade of %v is %q, want %q", weight, got, want)
		}
	}
}

func drawn(t *testing.T, f Figure, dpi int) image.Image {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, f.WritePNG(&out, dpi))
	img := must.Get(png.Decode(&out))(t)
	return img
}

// pixels returns the number of pixels in a picture that have a colour, and the rectangle that holds them.
func pixels(img image.Image, c color.Color) (n int, box image.Rectangle) {
	r, g, b, _ := c.RGBA()
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if pr, pg, pb, _ := img.At(x, y).RGBA(); pr == r && pg == g && pb == b {
				n++
				box = box.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return n, box
}

func TestWritePNG(t *testing.T) {
	dark := blues(colours).Colors()[colours-1]
	f := even([]string{"a", "b"}, []string{"x", "y"}, 1)
	weights := f.Layers[0].Heads[0]
	copy(weights, []float32{0, 1, 0, 0})
	img := drawn(t, f, 96)
	size := img.Bounds().Size()
	if size.X < 200 || size.X > 400 || size.Y < 150 || size.Y > 300 {
		t.Errorf("the picture has size %v, want 200 to 400 by 150 to 300 pixels", size)
	}
	one, box := pixels(img, dark)
	if d := box.Size(); d.X < 40 || d.X > 80 || d.X < d.Y-1 || d.X > d.Y+1 || one < d.X*d.Y*9/10 {
		t.Errorf("the cell of row a and column y has %d pixels in %v, want a square of 40 to 80 pixels", one, box)
	}
	copy(weights, []float32{0, 0, 1, 0})
	if _, other := pixels(drawn(t, f, 96), dark); other.Max.X > box.Min.X+2 || other.Min.Y < box.Max.Y-2 {
		t.Errorf("the cell of row b and column x is at %v, want it left of %v and below", other, box)
	}
	copy(weights, []float32{1.000001, 1, 0, float32(math.NaN())}) // 1.000001 from rounding counts as 1; NaN isn't drawn
	if two, _ := pixels(drawn(t, f, 96), dark); two < 2*one-50 || two > 2*one+50+size.X {
		t.Errorf("two cells have %d dark pixels, want twice the %d pixels of one cell", two, one)
	}
	if twice := drawn(t, f, 192).Bounds().Size(); twice.X < 2*size.X-2 || twice.X > 2*size.X+2 {
		t.Errorf("at twice the dpi the picture is %d pixels wide, want twice %d", twice.X, size.X)
	}
}

// TestLayout checks that the cells of a large map are square for any shape, and that heads are side by side up to
// tilesAcross.
func TestLayout(t *testing.T) {
	for _, shape := range [][2]int{{12, 40}, {40, 12}, {64, 64}} {
		f := even(letters(shape[0]), letters(shape[1]), 1)
		tile := f.Layers[0].strip(f.Layers[0].Titled())
		if w, h := float64(tile.width/cellSide), float64(tile.height/cellSide); w < float64(shape[1]) || h < float64(shape[0]) || w > float64(shape[1])+5 || h > max(float64(shape[0])+5, float64(tileHeight/cellSide)+1) {
			t.Errorf("a map of %v cells has the size of %.1f by %.1f cells", shape, h, w)
		}
	}
	var sizes [3]float64
	for i, heads := range []int{1, tilesAcross, tilesAcross + 1} {
		p := must.Get(even(letters(3), letters(3), heads).picture())(t)
		sizes[i] = float64(p.height)
	}
	if sizes[0] != sizes[1] || sizes[2] < sizes[0]+0.8*float64(tileHeight) {
		t.Errorf("1, %d and %d heads have heights %v, want two equal heights and one larger by a tile", tilesAcross, tilesAcross+1, sizes)
	}
}

func TestWritePNGTooLarge(t *testing.T) {
	for _, test := range []struct {
		inches    float64 // length of each side
		dpi, want int     // want 0 means an error
	}{{10, 192, 192}, {40, 192, 192}, {45, 192, 96}, {80, 192, 96}, {90, 192, 0}, {45, 800, 100}, {80, 96, 96}, {90, 96, 0}} {
		p := picture{width: vg.Length(test.inches) * vg.Inch, height: vg.Length(test.inches) * vg.Inch}
		got, err := p.resolution(test.dpi)
		if got != test.want || (err == nil) != (got > 0) {
			t.Errorf("for %v inches at %d dpi: %d, %v; want %d", test.inches, test.dpi, got, err, test.want)
		}
	}
	f := even(letters(2), letters(2), 1)
	for len(f.Layers) < 1<<12 {
		f.Layers = append(f.Layers, f.Layers...)
	}
	var out bytes.Buffer
	must.Fail(t, f.WritePNG(&out, 192), "million pixels, but at most 64 million are allowed", "fewer layers")
	if out.Len() > 0 {
		t.Error("WritePNG wrote a part of a picture that is too large")
	}
}

func TestBoxes(t *testing.T) {
	f := small()
	f.Layers[0].Rows, f.Layers[0].Columns = []string{"文", "中"}, []string{"é", "中", "→"}
	if got := f.Boxes(); got != "中文" {
		t.Errorf("the boxes stand for %q, want 中文", got)
	}
	boxed, _ := f.boxed()
	if got := strings.Join(boxed.Layers[0].Rows, "") + strings.Join(boxed.Layers[0].Columns, ""); got != "□□é□→" {
		t.Errorf("with boxes the labels are %q, want □□é□→", got)
	}
	for _, r := range "■►○·▫¶◊→□◌…¤" + coloursKey {
		if lacks(r) {
			t.Errorf("the font lacks %q", r)
		}
	}
	alone := f
	alone.Key = ""
	for want, f := range map[string]Figure{"key, " + boxKey: f, "key": small(), boxKey: alone} {
		if got, _ := f.boxed(); got.Key != want {
			t.Errorf("the key is %q, want %q", got.Key, want)
		}
	}
	drawn(t, f, 96)
}

// hostile returns a figure whose texts look like markup.
func hostile() Figure {
	f := small()
	f.Title, f.Key = `</title><script>alert("1")</script>`, `<b onload='x'>&amp;`
	l := &f.Layers[0]
	l.Name, l.Meaning = "<h1>", "--><svg>"
	l.Rows, l.Columns = []string{"<", `"`}, []string{"&", "'", `x" onclick="alert(1)`}
	return f
}

func TestWriteSVG(t *testing.T) {
	var out bytes.Buffer
	must.Do(t, hostile().WriteSVG(&out))
	d := xml.NewDecoder(&out)
	var texts string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the SVG isn't XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "script" || token.Name.Local == "b" {
				t.Errorf("the SVG has an element %s", token.Name.Local)
			}
		case xml.CharData:
			texts += string(token)
		}
	}
	f := hostile()
	must.Have(t, texts, f.Title, f.Key, "<h1>", "--><svg>", `x" onclick="alert(1)`)
}

// TestSVGFonts checks that the SVG has space for a viewer's font that is wider than the font that measures the lines.
func TestSVGFonts(t *testing.T) {
	f := small()
	f.Title = strings.Repeat("a wide title ", 20) + `="font-family:Liberation Serif;`
	var out strings.Builder
	must.Do(t, f.WriteSVG(&out))
	families, fallbacks := strings.Count(out.String(), `"font-family:`), strings.Count(out.String(), `"font-family:Liberation Serif,serif;`)
	if families == 0 || families != fallbacks {
		t.Errorf("%d of %d texts have a second font, want all", fallbacks, families)
	}
	must.Have(t, out.String(), "font-family:Liberation Serif;</text>") // the title's own text
	_, after, _ := strings.Cut(out.String(), `<svg width="`)
	before, _, _ := strings.Cut(after, "pt")
	width := must.Get(strconv.ParseFloat(before, 64))(t)
	p := must.Get(f.picture())(t)
	if want := 1.25*p.lines.Points() + 2*margin.Points(); p.lines < 10*vg.Inch || width < want-1 || width > want+1 {
		t.Errorf("the SVG is %v points wide, want %v", width, want)
	}
}

func htmlOf(t *testing.T, f Figure) string {
	t.Helper()
	var out strings.Builder
	must.Do(t, f.WriteHTML(&out))
	return out.String()
}

// TestWriteHTML checks that a page shows a table for each map in browsers without scripts.
func TestWriteHTML(t *testing.T) {
	content := htmlOf(t, small())
	_, without, _ := strings.Cut(content, "<noscript>")
	without, _, _ = strings.Cut(without, "</noscript>")
	must.Have(t, content, "<title>title</title>", "<h1>title</h1>", Style, Script)
	must.Have(t, without, "<p>key; no colour: no attention", "<h3>layer</h3>", "<caption>head 1</caption>",
		`<th scope="col">x</th><th scope="col">y</th><th scope="col">z</th></tr>`,
		`<tr><th scope="row">a</th><td style="--w:1.000" title="a → x: 1.000"></td><td></td><td></td></tr>`,
		`<tr><th scope="row">b</th><td style="--w:0.500" title="b → x: 0.500"></td><td style="--w:0.300" title="b → y: 0.300"></td>`)
	untitled := small()
	untitled.Title = ""
	must.Have(t, htmlOf(t, untitled), "<h1>Attention</h1>")
	content = htmlOf(t, hostile())
	content = dataElement.ReplaceAllString(content, "") // see TestHTMLData
	must.Lack(t, content, "<script>alert", "</script>al", "<svg", "<b ", `" onclick`, "ZgotmplZ", "http:")
}

var dataElement = regexp.MustCompile(`<script type="application/json">(.*)</script>`)

// TestHTMLData checks the data that a page has for its script.
func TestHTMLData(t *testing.T) {
	f := hostile()
	nan := float32(math.NaN())
	f.Layers[0].Heads[0] = []float32{0, 1, 0.123456, 1.000001, nan, 1e-9}
	content := must.Get(f.HTML())(t)
	var data struct {
		Key    string
		Layers []struct {
			Name, Meaning string
			Rows, Columns []string
			Heads         [][]byte
		}
	}
	must.Do(t, json.Unmarshal([]byte(dataElement.FindStringSubmatch(string(content))[1]), &data))
	l, want := data.Layers[0], f.Layers[0]
	if data.Key != f.Key || len(data.Layers) != 1 || l.Name != want.Name || l.Meaning != want.Meaning || !slices.Equal(l.Rows, want.Rows) || !slices.Equal(l.Columns, want.Columns) || len(l.Heads) != 2 {
		t.Errorf("unexpected data in the page: %+v", data)
	}
	for i, want := range []uint16{0, 60000, 7407, 60000, 65535, 0} {
		if got := binary.LittleEndian.Uint16(l.Heads[0][2*i:]); got != want {
			t.Errorf("weight %v is %d, want %d", f.Layers[0].Heads[0][i], got, want)
		}
	}
}

// TestHTMLOfManyWeights checks pages with many weights: browsers without scripts show a picture of each map, and the
// page has only a few bytes per weight.
func TestHTMLOfManyWeights(t *testing.T) {
	f := even(letters(200), letters(200), 8)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, weights := range f.Layers[0].Heads {
		for i := range weights {
			weights[i] = rng.Float32()
		}
	}
	weights := f.Layers[0].Heads[0]
	weights[0], weights[1], weights[201], weights[202] = 0, 1, 0.25, float32(math.NaN())
	content := htmlOf(t, f)
	if limit := 5 * 8 * 200 * 200; len(content) > limit {
		t.Errorf("the page has %d bytes, want at most %d", len(content), limit)
	}
	pictures := regexp.MustCompile(`<td rowspan="200" colspan="200"><img alt="" src="data:image/png;base64,([^"]*)" width="3000" height="3000"></td>`).FindAllStringSubmatch(content, -1)
	if len(pictures) != 8 || strings.Count(content, "<td") != 2*8 {
		t.Fatalf("the page has %d pictures and %d cells, want 8 and 16", len(pictures), strings.Count(content, "<td"))
	}
	img := must.Get(png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(html.UnescapeString(pictures[0][1])))))(t)
	for point, want := range map[image.Point]uint32{{0, 0}: 0, {1, 0}: 255, {1, 1}: 128, {2, 1}: 0} {
		if _, _, _, a := img.At(point.X, point.Y).RGBA(); a>>8 != want {
			t.Errorf("the pixel at %v has opacity %d, want %d", point, a>>8, want)
		}
	}
}

// failing is a writer that fails as if the disk were full.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFigureErrors(t *testing.T) {
	for _, test := range []struct {
		name   string
		figure Figure
		want   string
	}{
		{"no layers", Figure{}, "at least one layer"},
		{"no heads", even(letters(2), letters(2), 0), "got 2, 2 and 0"},
		{"no rows", even(nil, letters(2), 1), "got 0, 2 and 1"},
		{"no columns", even(letters(2), nil, 1), "got 2, 0 and 1"},
		{"a full disk", small(), "no space left"},
		{"weights that don't fit", func() Figure { f := small(); f.Layers[0].Rows = letters(3); return f }(), "(rows, columns) = (3, 3), got 6 weights for layer head 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, err := range map[string]error{
				"text": test.figure.WriteText(failing{}, 80), "PNG": test.figure.WritePNG(failing{}, 96),
				"SVG": test.figure.WriteSVG(failing{}), "HTML": test.figure.WriteHTML(failing{}),
			} {
				t.Run(name, func(t *testing.T) { must.Fail(t, err, test.want) })
			}
		})
	}
}
