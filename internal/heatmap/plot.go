package heatmap

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes in a picture. A tile has a map with its title and labels. Its cells are squares. They exceed cellSide if the
// tile would otherwise be lower than tileHeight.
const (
	tileHeight  = 41.5 * vg.Millimeter
	tileGap     = 3 * vg.Millimeter // between tiles
	margin      = 4 * vg.Millimeter // empty border of the picture
	cellSide    = 3.15 * vg.Millimeter
	lineHeight  = 6 * vg.Millimeter // for the title, the headings and the key
	tilesAcross = 8
	manyLabels  = 10 // with more labels, the font is smaller
)

// coloursKey explains the colours of pictures and pages.
const coloursKey = "white: no attention; dark blue: all attention of the row"

// Limits for a PNG. A larger picture would take gigabytes of memory. With fewer dots per inch than leastDPI, labels
// can't be read.
const (
	maxPixels = 64_000_000
	leastDPI  = 96
)

// WritePNG draws the figure as a PNG with dpi dots per inch, or fewer if the picture would be too large. It returns an
// error if the picture is too large even then. It draws □ for characters that the font lacks, and explains □ in the
// key: see Boxes.
func (f Figure) WritePNG(w io.Writer, dpi int) error {
	boxed, _ := f.boxed()
	p, err := boxed.picture()
	if err != nil {
		return err
	}
	if dpi, err = p.resolution(dpi); err != nil {
		return err
	}
	img := vgimg.NewWith(vgimg.UseWH(p.width, p.height), vgimg.UseDPI(dpi))
	p.draw(draw.New(img))
	return png.Encode(w, paletted(img.Image().(*image.RGBA)))
}

// paletted returns the image with a palette: the colours of maps, and greys. It replaces every other colour, which
// blending makes at edges, with the nearest one. This makes the PNG a third as large.
func paletted(img *image.RGBA) *image.Paletted {
	palette := color.Palette(blues(colours).Colors())
	for y := 0; y < 256; y += 3 {
		palette = append(palette, color.Gray{Y: uint8(y)})
	}
	bounds := img.Bounds()
	out := image.NewPaletted(bounds, palette)
	nearest := map[color.RGBA]uint8{}
	var last color.RGBA // colour of the previous pixel; index is its index
	var index uint8
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			if c := img.RGBAAt(x, y); c != last {
				i, known := nearest[c]
				if !known {
					i = uint8(palette.Index(c))
					nearest[c] = i
				}
				last, index = c, i
			}
			out.SetColorIndex(x, y, index)
		}
	}
	return out
}

// resolution returns dpi, halved until the picture has at most maxPixels, or an error if that isn't possible.
func (p picture) resolution(dpi int) (int, error) {
	inches := (p.width / vg.Inch).Points() * (p.height / vg.Inch).Points() // square inches
	pixels := func() float64 { return inches * float64(dpi) * float64(dpi) }
	for pixels() > maxPixels && dpi/2 >= leastDPI {
		dpi /= 2
	}
	if pixels() > maxPixels {
		return 0, fmt.Errorf("the picture would have %.0f million pixels, but at most %d million are allowed: show fewer layers or a shorter input, or write HTML", pixels()/1e6, maxPixels/1_000_000)
	}
	return dpi, nil
}

// WriteSVG draws the figure as an SVG. The viewer draws its text with Liberation Serif or, if that is missing, another
// serif font, whose lines may be longer.
func (f Figure) WriteSVG(w io.Writer) error {
	p, err := f.picture()
	if err != nil {
		return err
	}
	p.width = max(p.width, 1.25*p.lines+2*margin)
	svg := vgsvg.New(p.width, p.height)
	p.draw(draw.New(svg))
	var drawn bytes.Buffer
	if _, err := svg.WriteTo(&drawn); err != nil {
		return err
	}
	// Quotes in the SVG's texts are escaped, so this changes attributes only.
	_, err = w.Write(bytes.ReplaceAll(drawn.Bytes(), []byte(`="font-family:Liberation Serif;`), []byte(`="font-family:Liberation Serif,serif;`)))
	return err
}

// Colours returns the legend of a picture or a page: the text that explains labels and colours.
func (f Figure) Colours() string {
	if f.Key == "" {
		return coloursKey
	}
	return f.Key + "; " + coloursKey
}

// A picture is the layout of a figure: strips of tiles, one below the other.
type picture struct {
	title, key    string
	strips        []strip
	width, height vg.Length
	lines         vg.Length // width of the widest line of text
}

// A strip has maps of one layer, side by side.
type strip struct {
	heading       string
	plots         []*plot.Plot
	width, height vg.Length // size without the heading
}

func (f Figure) picture() (picture, error) {
	if err := f.check(); err != nil {
		return picture{}, err
	}
	p := picture{title: f.Title, key: f.Colours()}
	for _, l := range f.Layers {
		heading := l.Heading()
		for heads := range slices.Chunk(l.Titled(), tilesAcross) {
			s := l.strip(heads)
			s.heading, heading = heading, ""
			p.strips = append(p.strips, s)
		}
	}
	lines := []string{p.title, p.key}
	for _, s := range p.strips {
		lines = append(lines, s.heading)
		p.width = max(p.width, s.width)
		p.height += s.height + tileGap
	}
	p.height -= tileGap
	for i, line := range lines {
		if line != "" {
			p.lines = max(p.lines, lineStyle(i == 0).Width(line))
			p.height += lineHeight
		}
	}
	p.width = max(p.width, p.lines) + 2*margin
	p.height += 2 * margin
	return p, nil
}

// strip returns the heads of a layer as tiles of one size.
func (l Layer) strip(heads []head) strip {
	var s strip
	for _, h := range heads {
		s.plots = append(s.plots, l.plot(h))
	}
	// The space for labels and titles doesn't depend on the size of the tile, so any size will do to measure it.
	const any = 100 * vg.Centimeter
	cells := s.plots[0].DataCanvas(draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: any, Y: any}}}).Size()
	rows, columns := vg.Length(len(l.Rows)), vg.Length(len(l.Columns))
	side := max(cellSide, (tileHeight-any+cells.Y)/max(rows, columns))
	width := max(s.plots[0].Title.TextStyle.Width(heads[0].Title), any-cells.X+columns*side)
	s.width = vg.Length(len(heads))*(width+tileGap) - tileGap
	s.height = any - cells.Y + rows*side
	return s
}

// plot returns the plot of one map.
func (l Layer) plot(h head) *plot.Plot {
	p := plot.New()
	p.Title.Text = h.Title
	p.Title.TextStyle.Font.Size = font.Points(9)
	m := plotter.NewHeatMap(grid{h.Weights, len(l.Rows), len(l.Columns)}, blues(colours))
	m.Min, m.Max = 0, 1
	p.Add(m, cellLines{len(l.Rows), len(l.Columns)})
	p.X.LineStyle.Width, p.Y.LineStyle.Width = 0, 0 // the map's own lines replace the axes
	var keys, queries []plot.Tick
	for i, label := range l.Columns {
		keys = append(keys, plot.Tick{Value: float64(i), Label: label})
	}
	for i, label := range l.Rows {
		queries = append(queries, plot.Tick{Value: float64(len(l.Rows) - 1 - i), Label: label})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(keys), plot.ConstantTicks(queries)
	p.X.Tick.Length, p.Y.Tick.Length = 0, 0
	if max(len(l.Rows), len(l.Columns)) > manyLabels {
		p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = font.Points(8), font.Points(8)
	}
	return p
}

func (p picture) draw(c draw.Canvas) {
	c = draw.Crop(c, margin, -margin, margin, -margin)
	line := func(style text.Style, s string) {
		if s != "" {
			c.FillText(style, vg.Point{X: c.Min.X, Y: c.Max.Y - lineHeight/2}, s)
			c.Max.Y -= lineHeight
		}
	}
	line(lineStyle(true), p.title)
	for _, s := range p.strips {
		line(lineStyle(false), s.heading)
		tiles := c
		tiles.Min.Y = c.Max.Y - s.height
		tiles.Max.X = c.Min.X + s.width
		t := draw.Tiles{Rows: 1, Cols: len(s.plots), PadX: tileGap}
		for i, tile := range plot.Align([][]*plot.Plot{s.plots}, t, tiles)[0] {
			s.plots[i].Draw(tile)
		}
		c.Max.Y = tiles.Min.Y - tileGap
	}
	line(lineStyle(false), p.key)
}

// lineStyle returns the text style of a picture's lines.
func lineStyle(title bool) text.Style {
	size := font.Points(10)
	if title {
		size = font.Points(13)
	}
	return text.Style{Color: color.Black, Font: font.From(plot.DefaultFont, size), YAlign: draw.YCenter, Handler: plot.DefaultTextHandler}
}

// grid has the weights of one head for plotter.HeatMap, with the first query on top.
type grid struct {
	weights       []float32
	rows, columns int
}

func (g grid) Dims() (c, r int) { return g.columns, g.rows }
func (g grid) X(c int) float64  { return float64(c) }
func (g grid) Y(r int) float64  { return float64(r) }

// Z returns a cell's weight. If rounding has made the weight larger than 1, Z returns 1, because larger weights have no
// colour. If the cell would be white, Z returns NaN, and the cell isn't drawn.
func (g grid) Z(c, r int) float64 {
	weight := float64(g.weights[(g.rows-1-r)*g.columns+c])
	if weight < 0.5/(colours-1) {
		return math.NaN()
	}
	return min(1, weight)
}

// colours is the number of shades in a map.
const colours = 64

// cellLines draws thin lines between cells.
type cellLines struct{ rows, columns int }

func (g cellLines) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := draw.LineStyle{Color: color.Gray{Y: 225}, Width: vg.Points(0.35)}
	for i := range g.columns + 1 {
		position := x(float64(i) - 0.5)
		c.StrokeLine2(style, position, c.Min.Y, position, c.Max.Y)
	}
	for i := range g.rows + 1 {
		position := y(float64(i) - 0.5)
		c.StrokeLine2(style, c.Min.X, position, c.Max.X, position)
	}
}

// blues is a palette from white to dark blue. Its value is the number of colours.
type blues int

func (n blues) Colors() []color.Color {
	out := make([]color.Color, n)
	for i := range out {
		x := float64(i) / float64(n-1)
		out[i] = color.RGBA{R: uint8(255 - 235*x), G: uint8(255 - 195*x), B: uint8(255 - 115*x), A: 255}
	}
	return out
}
