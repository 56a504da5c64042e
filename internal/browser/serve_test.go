package browser

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

const (
	hostileText  = "<script>window.hacked=1;alert(1)</script>\"'><img src=x onerror='window.hacked=2'>\u202ecba\u200d\x01e\u0301 文👍\t&amp;</noscript>"
	hostileLabel = "<img src=x onerror=window.hacked=3>\u202e\"'\x02"
)

// fill writes a text into a field. It uses a script, because some characters can't be typed.
func (p *tab) fill(field, text string) {
	p.Helper()
	evaluate[bool](p, fmt.Sprintf("(e => { e.value = %q; return true; })(document.querySelector(%q))", text, field))
}

// TestServe checks that the page of heed serve shows answers and the model's attention.
func TestServe(t *testing.T) {
	dir := trained(t, "--task=dates", "--layers=2", "--max-epochs=1")
	const source = "Thu, 7 March 2024"
	_, want := attended(t, dir, source)
	address, _ := serving(t, "serve", dir, "--addr=127.0.0.1:0")
	for _, s := range []screen{desktop, phone} {
		t.Run(s.name, func(t *testing.T) {
			p := open(t, address, s)
			p.fits()
			p.fill("#text", source+"\n<img src=x>\u202e\x02")
			p.click("document.querySelector('#ask')")
			p.until("document.querySelectorAll('#answers tbody tr').length === 2")
			const cell = "document.querySelector('#answers tbody').rows[%d].cells[1].innerText"
			if got := evaluate[string](p, fmt.Sprintf(cell, 0)); got != want.Answer {
				t.Errorf("the answer is %q, want %q", got, want.Answer)
			}
			if got := evaluate[string](p, fmt.Sprintf(cell, 1)); !strings.Contains(got, "isn't one of") || !strings.Contains(got, "<img src") || strings.ContainsAny(got, "\u202e\x02") {
				t.Errorf("for a wrong input the page shows %q, want the error as text", got)
			}
			p.fits()
			p.click("document.querySelector('#answers button')")
			p.until("document.querySelector('.reading')")
			p.click(radios + "[1]")
			p.click(rowTokens + "[2]")
			l := want.Layers[0]
			p.until(rowTokens + "[2].getAttribute('aria-selected') === 'true'")
			p.lists(l.Columns, l.Heads[1][2*len(l.Columns):][:len(l.Columns)])
			p.reads("head 1", l.Rows, l.Columns, l.Heads[1])
			p.fits()
		})
	}
}

// TestServeHostileTexts checks that the page of a text model shows its corpus and the prompt as text, even if they look
// like scripts.
func TestServeHostileTexts(t *testing.T) {
	dir := hostileRun(t)
	address, _ := serving(t, "serve", dir, "--addr=127.0.0.1:0")
	p := open(t, address, phone)
	p.fits()
	for range 2 {
		p.fill("#text", hostileText)
		p.click("document.querySelector('#ask')")
		p.until("document.querySelector('#answers pre')?.innerText.length > 250 && !document.querySelector('#ask').disabled")
		if got := evaluate[string](p, "document.querySelector('#answers pre').textContent"); !strings.HasPrefix(got, "<script>window.hacked=1;") || strings.ContainsAny(got, "\u202e\x01\u200d") {
			t.Errorf("the page shows %q, want the prompt as text", got)
		}
	}
	p.click("document.querySelector('#look')")
	p.until("document.querySelector('.reading')")
	p.fits()
}

// hostileLabels returns a run whose labels look like scripts.
func hostileLabels(t *testing.T) string {
	t.Helper()
	var rows strings.Builder
	for i := range 50 {
		fmt.Fprintf(&rows, "a good day %d\t%s\nsome bad night %d\t</script>\n", i, hostileLabel, i)
	}
	data := write(t, "hostile.tsv", "text\tlabel\n"+rows.String())
	return trained(t, "--task=classification", "--data="+data, "--steps-per-epoch=0", "--layers=1", "--max-epochs=1")
}

func TestServeHostileLabels(t *testing.T) {
	dir := hostileLabels(t)
	address, _ := serving(t, "serve", dir, "--addr=127.0.0.1:0")
	p := open(t, address, desktop)
	p.fill("#text", "a good day")
	p.click("document.querySelector('#ask')")
	p.until("document.querySelector('#answers button')")
	if got := evaluate[string](p, "document.querySelector('#answers tbody').rows[0].cells[1].textContent"); !strings.HasPrefix(got, "<") || strings.ContainsAny(got, "\u202e\x02") {
		t.Errorf("the answer is %q, want the label as text", got)
	}

	// A text with several lines has one answer. The labels have probabilities, which add up to 1. If the text is longer
	// than the model's context, the page says so.
	p.fill("#text", "a good\nday "+strings.Repeat("a ", 100))
	p.click("document.querySelector('#ask')")
	p.until("document.querySelector('#answers small')")
	const rows = "[...document.querySelector('#answers tbody').rows]"
	if got := evaluate[string](p, rows+"[0].cells[0].innerText"); !strings.HasPrefix(got, "a good\nday a a") || !strings.Contains(got, "It is too long: the model ignored a part of it.") {
		t.Errorf("the input is %q, want the text and a note that it is too long", got)
	}
	if got := evaluate[float64](p, rows+".map(r => r.cells[r.cells.length - 1].innerText).reduce((sum, s) => sum + (s.startsWith('<') ? 0 : parseFloat(s)), 0)"); !(math.Abs(got-100) < 0.03) {
		t.Errorf("the probabilities sum to %v %%, want 100 %%", got)
	}
	if got := evaluate[string](p, rows+".map(r => r.cells.length).join()"); got != "3,2" {
		t.Errorf("the rows have %s cells, want two labels for one input", got)
	}
	p.fits()
	p.click("document.querySelector('#lines')")
	p.click("document.querySelector('#ask')")
	p.until(rows + ".length === 4")
	p.click("document.querySelector('#answers button')")
	p.until("document.querySelector('.reading')")
	p.fits()
}

// TestServeSpans checks that the page marks entities in the input, with offsets in bytes, and shows everything as text.
func TestServeSpans(t *testing.T) {
	var rows strings.Builder
	for i := range 60 {
		fmt.Fprintf(&rows, "Zoë 文👍 saw <b> %d\tB-<i>x I-<i>x O B-y O\n", i%7)
	}
	dir := trained(t, "--task=tagging", "--data="+write(t, "entities.tsv", "tokens\ttags\n"+rows.String()), "--steps-per-epoch=0", "--layers=1", "--max-epochs=6", "--learning-rate=0.01")
	address, _ := serving(t, "serve", dir, "--addr=127.0.0.1:0")
	for _, s := range []screen{desktop, phone} {
		t.Run(s.name, func(t *testing.T) {
			p := open(t, address, s)
			p.fill("#text", "\ufeffZoë 文👍 saw <b> 2")
			p.click("document.querySelector('#ask')")
			p.until("document.querySelector('#answers bdi mark')")
			const input = "document.querySelector('#answers td bdi')"
			if got := evaluate[string](p, input+".textContent"); !strings.HasSuffix(got, "Zoë 文👍<i>x saw <b>y 2") {
				t.Errorf("the input is %q, want it with the labels of its entities", got)
			}
			if got := evaluate[string](p, "[..."+input+".querySelectorAll('mark')].map(m => m.firstChild.data).join('|')"); !strings.HasSuffix(got, "文👍|<b>") {
				t.Errorf("marked is %q, want Zoë 文👍 and <b>", got)
			}
			p.fits()
		})
	}
}
