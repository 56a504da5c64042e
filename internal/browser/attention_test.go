package browser

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/heed-go/heed/train/model"
)

// attended returns the address of the page that heed attention writes, and the result of model.Attention for the same
// input.
func attended(t *testing.T, dir, source string) (address string, want *model.Attention) {
	t.Helper()
	path := filepath.Join(folder, filepath.Base(dir)+".html")
	command(t, "attention", dir, source, "--out="+path)
	m, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want, err = m.Attention(source, ""); err != nil {
		t.Fatal(err)
	}
	return "file://" + path, want
}

// listed is an entry of the page's list of weights.
type listed struct {
	Position int
	Label    string
	Value    float64
	Text     string
}

// weights returns the weights that the page lists.
func (p *tab) weights() []listed {
	p.Helper()
	return evaluate[[]listed](p, `[...document.querySelectorAll('.weights li:not(.rest)')].map(li => ({
		Position: Number(li.querySelector('small').textContent.replace(/[ ()]/g, '')),
		Label: li.querySelector('bdi').textContent,
		Value: Number(li.querySelector('data').value),
		Text: li.querySelector('data').textContent,
	}))`)
}

// lists checks that the page lists the largest weights in falling order, with their labels.
func (p *tab) lists(labels []string, weights []float32) {
	p.Helper()
	got := p.weights()
	largest := slices.Clone(weights)
	slices.SortFunc(largest, func(a, b float32) int { return int(math.Copysign(1, float64(b-a))) })
	if len(got) == 0 || len(got) != min(10, len(weights)) && largest[len(got)] > 0.00051 {
		p.Fatalf("the page lists %d of %d weights, want the 10 largest or all above 0", len(got), len(weights))
	}
	for i, l := range got {
		if math.Abs(l.Value-float64(weights[l.Position])) > 1e-4 || math.Abs(l.Value-float64(largest[i])) > 1e-4 {
			p.Errorf("entry %d of the list has the weight %v at position %d, want the weight %v; the weight at this position is %v", i, l.Value, l.Position, largest[i], weights[l.Position])
		}
		if l.Label != labels[l.Position] || l.Text != fmt.Sprintf("%.3f", l.Value) {
			p.Errorf("entry %d of the list shows %q %q, want %q %.3f", i, l.Label, l.Text, labels[l.Position], l.Value)
		}
	}
}

// reads checks that the page shows one weight of a head, such as head 0, as text, and returns its row and column.
func (p *tab) reads(head string, rows, columns []string, weights []float32) (row, column int) {
	p.Helper()
	text := evaluate[string](p, "document.querySelector('.reading').textContent")
	numbers := evaluate[[]int](p, "[...document.querySelectorAll('.reading small')].map(e => Number(e.textContent.replace(/[ ()]/g, '')))")
	if len(numbers) != 2 {
		p.Fatalf("the page shows %q, want a weight with its row and column", text)
	}
	row, column = numbers[0], numbers[1]
	weight := weights[row*len(columns)+column]
	want := fmt.Sprintf("%s (%d) → %s (%d), %s: ", rows[row], row, columns[column], column, head)
	var got float64
	if _, err := fmt.Sscanf(strings.TrimPrefix(text, want), "%f", &got); err != nil || !strings.HasPrefix(text, want) || math.Abs(got-float64(weight)) > 0.0006 {
		p.Errorf("the page shows %q, want %s%.3f", text, want, weight)
	}
	return row, column
}

const (
	radios       = "document.querySelectorAll('[role=radio]')"
	rowTokens    = "document.querySelectorAll('[role=listbox]')[0].children"
	columnTokens = "document.querySelectorAll('[role=listbox]')[1].children"
	chart        = "document.querySelector('canvas.map')"
)

func text(element string) string { return element + ".textContent" }

const meanOfHeads = "mean of the heads"

// meanOf returns the mean over heads of each weight.
func meanOf(heads [][]float32) []float32 {
	mean := make([]float32, len(heads[0]))
	for _, weights := range heads {
		for i, w := range weights {
			mean[i] += w / float32(len(heads))
		}
	}
	return mean
}

// sharpest returns the head whose rows have the lowest mean entropy, and the layer that it is in.
func sharpest(a *model.Attention) (layer model.AttentionLayer, head int) {
	lowest := math.Inf(1)
	for _, l := range a.Layers {
		for i, weights := range l.Heads {
			entropy := 0.0
			for _, w := range weights {
				if w > 0 {
					entropy -= float64(w) * math.Log(float64(w)) / float64(len(l.Rows))
				}
			}
			if entropy < lowest-1e-4 { // the page has rounded weights
				lowest, layer, head = entropy, l, i
			}
		}
	}
	return layer, head
}

// TestAttention checks that the page opens on the sharpest head, and that it shows the weights of model.Attention and
// their means over heads, for cross-attention and self-attention, with a mouse and on a touch screen.
func TestAttention(t *testing.T) {
	dir := trained(t, "--task=dates", "--layers=2", "--max-epochs=1")
	address, want := attended(t, dir, "Thu, 7 March 2024")
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			p := open(t, address, s)
			p.fits()
			heads := 0
			for _, l := range want.Layers {
				heads += len(l.Heads) + 1 // and the mean
			}
			if got := evaluate[int](p, radios+".length"); got != heads {
				t.Fatalf("there are %d heads to choose from, want %d", got, heads)
			}
			first, head := sharpest(want)
			if got, want := evaluate[string](p, text("document.querySelector('h3')")), fmt.Sprintf("%s, head %d", first.Name, head); got != want {
				t.Errorf("the page opens on %s, want the sharpest head, %s", got, want)
			}
			labels := "Array.from(%s, e => e.textContent)"
			if got := evaluate[[]string](p, fmt.Sprintf(labels, rowTokens)); !slices.Equal(got, first.Rows) {
				t.Errorf("the rows are %q, want %q", got, first.Rows)
			}
			if got := evaluate[[]string](p, fmt.Sprintf(labels, columnTokens)); !slices.Equal(got, first.Columns) {
				t.Errorf("the columns are %q, want %q", got, first.Columns)
			}
			n := 0
			for _, l := range want.Layers {
				for head, weights := range append(slices.Clip(l.Heads), meanOf(l.Heads)) {
					name := fmt.Sprint("head ", head)
					if head == len(l.Heads) {
						name = meanOfHeads
					}
					press := p.click
					if s == phone {
						press = p.tap
					}
					press(fmt.Sprintf("%s[%d]", radios, n))
					n++
					p.until(fmt.Sprintf("%s === '%s, %s'", text("document.querySelector('h3')"), l.Name, name))
					row := n % len(l.Rows)
					if s == phone {
						p.tap(fmt.Sprintf("%s[%d]", rowTokens, row))
					} else {
						p.hover(fmt.Sprintf("%s[%d]", rowTokens, row))
					}
					p.until(fmt.Sprintf("%s[%d].getAttribute('aria-selected') === 'true'", rowTokens, row))
					rowWeights := weights[row*len(l.Columns):][:len(l.Columns)]
					p.lists(l.Columns, rowWeights)
					if got, column := p.reads(name, l.Rows, l.Columns, weights); got != row || rowWeights[column] < slices.Max(rowWeights)-1e-4 {
						t.Errorf("for row %d, the page shows row %d and column %d", row, got, column)
					}
				}
			}
			p.fits()
		})
	}
}

// TestAttentionPointer checks what the page shows for the mouse: for the pointer over a column, its weight in the
// chosen row; for a chosen column, the rows that attend to it; for the pointer over the large map, the weight below it.
func TestAttentionPointer(t *testing.T) {
	dir := trained(t, "--task=dates", "--layers=2", "--max-epochs=1")
	address, want := attended(t, dir, "Thu, 7 March 2024")
	l := want.Layers[0]
	weights := l.Heads[0]
	p := open(t, address, desktop)
	p.click(radios + "[0]")
	p.click(rowTokens + "[3]")
	p.hover(columnTokens + "[5]")
	p.until(columnTokens + "[5].getAttribute('aria-selected') === 'true'")
	if row, column := p.reads("head 0", l.Rows, l.Columns, weights); row != 3 || column != 5 {
		t.Errorf("the page shows row %d and column %d, want 3 and 5", row, column)
	}
	p.click(columnTokens + "[6]")
	p.until(rowTokens + "[3].getAttribute('aria-selected') === 'false'")
	var looks []float32
	for i := range l.Rows {
		looks = append(looks, weights[i*len(l.Columns)+6])
	}
	p.lists(l.Rows, looks)

	x, y := p.middle(chart)
	p.point(x, y)
	row, column := p.reads("head 0", l.Rows, l.Columns, weights)
	p.point(x+60, y-60)
	row2, column2 := p.reads("head 0", l.Rows, l.Columns, weights)
	if row2 >= row || column2 <= column || math.Abs(float64(column-len(l.Columns)/2)) > 2 || math.Abs(float64(row-len(l.Rows)/2)) > 2 {
		t.Errorf("in the middle of the map the page shows row %d and column %d; for a point to the right and above, row %d and column %d", row, column, row2, column2)
	}
	p.point(1, 1)
	p.lists(l.Rows, looks) // column 6 is still chosen
}

func TestAttentionKeys(t *testing.T) {
	dir := trained(t, "--task=dates", "--layers=2", "--max-epochs=1")
	address, want := attended(t, dir, "Thu, 7 March 2024")
	p := open(t, address, desktop)
	focused := func(role string) {
		t.Helper()
		if got := evaluate[string](p, "document.activeElement.getAttribute('role')"); got != role {
			t.Fatalf("the focus is on a %s, want %s", got, role)
		}
		if outline := evaluate[string](p, "getComputedStyle(document.activeElement).outlineStyle"); outline != "solid" {
			t.Errorf("the focused %s has outline %s", role, outline)
		}
	}
	p.click(radios + "[0]")
	for i, key := range []string{kb.ArrowRight, kb.ArrowDown, kb.ArrowLeft, kb.ArrowUp, kb.ArrowLeft, kb.ArrowLeft} {
		p.press(key)
		focused("radio")
		last := len(want.Layers) - 1
		layer, head := []int{0, 1, 1, 0, last, last}[i], []string{"head 1", "head 1", "head 0", "head 0", meanOfHeads, "head 1"}[i]
		if got, want := evaluate[string](p, "document.activeElement.getAttribute('aria-label')"), want.Layers[layer].Name+", "+head; got != want || !strings.HasPrefix(evaluate[string](p, text("document.querySelector('h3')")), got) {
			t.Errorf("after key %d the page has chosen %q, want %q", i, got, want)
		}
	}
	l := want.Layers[len(want.Layers)-1]
	p.press(kb.Tab)
	focused("option")
	p.press(kb.Home)
	p.press(kb.ArrowRight)
	if row, _ := p.reads("head 1", l.Rows, l.Columns, l.Heads[1]); row != 1 {
		t.Errorf("the page shows row %d, want 1", row)
	}
	p.press(kb.Tab)
	focused("option")
	p.press(kb.End)
	if _, column := p.reads("head 1", l.Rows, l.Columns, l.Heads[1]); column != len(l.Columns)-1 {
		t.Errorf("the page shows column %d, want the last", column)
	}
	p.press(kb.Tab)
	focused("application")
	p.press(kb.ArrowDown)
	p.press(kb.ArrowLeft)
	if row, column := p.reads("head 1", l.Rows, l.Columns, l.Heads[1]); row != 1 || column != len(l.Columns)-2 {
		t.Errorf("on the map the page shows row %d and column %d, want 1 and %d", row, column, len(l.Columns)-2)
	}
	p.press(kb.Escape)
	if got := evaluate[string](p, text("document.querySelector('.reading')")); !strings.HasPrefix(got, "Choose a token") {
		t.Errorf("with nothing chosen the page shows %q, want Choose a token …", got)
	}
}

// TestAttentionLong checks that a page with 200 tokens and all their weights has few elements and fits the screen.
func TestAttentionLong(t *testing.T) {
	data := write(t, "long.txt", strings.Repeat("attention is all you need, and every token looks at every other. ", 40))
	dir := trained(t, "--task=text", "--data="+data, "--max-len=200", "--layers=12", "--max-epochs=1", "--validation=2")
	address, want := attended(t, dir, strings.Repeat("every token looks at all you need. ", 6)[:200])
	l := want.Layers[11]
	if len(l.Rows) != 200 {
		t.Fatalf("there are %d tokens, want 200", len(l.Rows))
	}
	for _, s := range []screen{desktop, phone} {
		p := open(t, address, s)
		p.fits()
		if n := evaluate[int](p, "document.querySelectorAll('*').length"); n > 1000 {
			t.Errorf("the page has %d elements, want at most 1000", n)
		}
		p.click(radios + "[34]")
		p.click(rowTokens + "[150]")
		p.until(rowTokens + "[150].getAttribute('aria-selected') === 'true'")
		p.lists(l.Columns, l.Heads[1][150*200:][:200])
		p.hover(chart)
		p.reads("head 1", l.Rows, l.Columns, l.Heads[1])
	}
}

// hostileRun returns a run whose texts look like scripts.
func hostileRun(t *testing.T) string {
	t.Helper()
	data := write(t, "hostile.txt", strings.Repeat(hostileText+"\n", 40))
	return trained(t, "--task=text", "--data="+data, "--max-len=160", "--layers=1", "--max-epochs=1", "--validation=2")
}

// TestAttentionOfHostileTexts checks that labels, names and texts never become markup or code, and that their control
// characters have no effect.
func TestAttentionOfHostileTexts(t *testing.T) {
	address, want := attended(t, hostileRun(t), hostileText)
	for _, s := range []screen{desktop, phone} {
		p := open(t, address, s)
		p.fits()
		if got := evaluate[[]string](p, "Array.from("+rowTokens+", e => e.textContent)"); !slices.Equal(got, want.Layers[0].Rows) {
			t.Errorf("the labels are %q, want %q", got, want.Layers[0].Rows)
		}
		if title := evaluate[string](p, "document.title"); strings.ContainsAny(title, "\u202e\x01\n") {
			t.Errorf("the title is %q, want no control characters", title)
		}
		if n := evaluate[int](p, "document.images.length + document.scripts.length"); n != 2 {
			t.Errorf("the page has %d images and scripts, want its two scripts", n)
		}
	}
}
