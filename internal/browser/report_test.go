package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/report"
	"github.com/heed-go/heed/train/task"
)

// longRun turns a short run into a run of 300 epochs, and returns its page.
func longRun(t *testing.T, dir string) string {
	t.Helper()
	run, err := task.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	model, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	first := run.History[0]
	run.History, run.Seconds = nil, nil
	for i := range 300 {
		check := first
		check.Epoch, check.Step = i, 2*(i+1)
		check.TrainLoss, check.ValLoss = 4/float64(i+1), 4/float64(i+1)+float64(i)/300
		run.History, run.Seconds = append(run.History, check), append(run.Seconds, 0.01)
	}
	run.Best = 42
	f, err := os.Create(filepath.Join(folder, "long-run.html"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := report.FromTask(dir, run)
	if err := page.AddAnswers(t.Context(), model, nil); err != nil {
		t.Fatal(err)
	}
	if err := page.Write(f); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// TestReport checks that the page of a run draws its curves and shows their values under the pointer, for 3 epochs and
// for 300 epochs.
func TestReport(t *testing.T) {
	dir := trained(t, "--task=dates", "--layers=1", "--max-epochs=3")
	run, err := task.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, path string
		epochs     int
		loss       float64 // training loss in the first epoch
	}{
		{"3 epochs", filepath.Join(dir, runfolder.ReportFile), 3, run.History[0].TrainLoss},
		{"300 epochs", longRun(t, dir), 300, 4},
	} {
		for _, s := range screens {
			t.Run(test.name+", "+s.name, func(t *testing.T) {
				p := open(t, "file://"+test.path, s)
				p.fits()
				const drawn = `[...document.querySelectorAll('#charts .uplot canvas')].filter(c =>
					c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v > 0)).length`
				p.until(drawn + " >= 4")
				if n := evaluate[int](p, "document.querySelectorAll('.uplot').length"); n != 5 {
					t.Errorf("there are %d charts, want 5", n)
				}
				const over = "document.querySelector('#charts .u-over')"
				x, y := p.middle(over)
				p.point(x-evaluate[float64](p, over+".clientWidth")/2+1, y)
				const legend = "[...document.querySelectorAll('#charts .uplot')[0].querySelectorAll('.u-value')].map(e => e.textContent)"
				p.until(legend + "[0] === '0'")
				if got, err := strconv.ParseFloat(evaluate[[]string](p, legend)[1], 64); err != nil || got < 0.999*test.loss || got > 1.001*test.loss {
					t.Errorf("the loss of epoch 0 under the pointer is %v, want %v", got, test.loss)
				}
				p.point(1, 1) // the legend may get a line more or less
				p.until(legend + "[0] !== '0'")
				p.click("document.querySelector('summary')")
				p.until("document.querySelector('details').open")
				if rows := evaluate[int](p, "document.querySelectorAll('details tbody tr').length"); rows < 3 || rows > test.epochs {
					t.Errorf("the table has %d checks, want 3 to %d", rows, test.epochs)
				}
				p.fits()
				p.click(radios + "[1]")
				p.until(text("document.querySelector('.attention h3')") + ".endsWith(', head 1')")
			})
		}
	}
}

// TestReportOfSeveralRuns checks the page that compares two runs.
func TestReportOfSeveralRuns(t *testing.T) {
	one, other := trained(t, "--task=dates", "--layers=1", "--max-epochs=3"), trained(t, "--task=dates", "--layers=2", "--max-epochs=1")
	path := filepath.Join(folder, "compared.html")
	command(t, "report", one, other, "--out="+path)
	for _, s := range []screen{desktop, phone} {
		p := open(t, "file://"+path, s)
		p.fits()
		p.until("document.querySelectorAll('#charts .uplot').length >= 2")
		body := evaluate[string](p, "document.body.innerText")
		for _, want := range []string{filepath.Base(one), filepath.Base(other), "layers"} {
			if !strings.Contains(body, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
	}
}

// colours returns the colour of each curve in the legend of the first chart.
func (p *tab) colours() map[string]string {
	p.Helper()
	return evaluate[map[string]string](p, `Object.fromEntries([...document.querySelector('.uplot').querySelectorAll('.u-series')].map(e => [
		e.querySelector('.u-label').textContent, getComputedStyle(e.querySelector('.u-marker')).borderTopColor]))`)
}

// TestReportOfManyRuns checks that the legend shows the dashes of the curves, so that runs with the same colour can be
// told apart.
func TestReportOfManyRuns(t *testing.T) {
	one, other := trained(t, "--task=dates", "--layers=1", "--max-epochs=3"), trained(t, "--task=dates", "--layers=2", "--max-epochs=1")
	path := filepath.Join(folder, "many.html")
	command(t, "report", one, one, one, one, one, one, other, other, "--out="+path)
	for _, s := range []screen{desktop, phone} {
		p := open(t, "file://"+path, s)
		p.until("document.querySelectorAll('#charts .uplot').length >= 2")
		p.fits()
		styles := evaluate[[]string](p, "[...document.querySelector('.uplot').querySelectorAll('.u-marker')].map(e => getComputedStyle(e).borderTopStyle)")
		if want := append(slices.Repeat([]string{"solid"}, 6), "dashed", "dashed"); !slices.Equal(styles[1:], want) {
			t.Errorf("the legend has the lines %q, want %q", styles[1:], want)
		}
		if shown := evaluate[bool](p, "[...document.querySelectorAll('.u-marker')].slice(1, 9).every(e => e.getBoundingClientRect().height > 0)"); !shown {
			t.Error("a line of the legend has no height")
		}
	}
}

// TestReportOfHostileTexts checks that texts and labels that look like scripts stay texts in the page of a run.
func TestReportOfHostileTexts(t *testing.T) {
	for name, dir := range map[string]string{"texts": hostileRun(t), "classification": hostileLabels(t)} {
		for _, s := range []screen{desktop, phone} {
			t.Run(fmt.Sprint(name, ", ", s.name), func(t *testing.T) {
				p := open(t, "file://"+filepath.Join(dir, runfolder.ReportFile), s)
				p.fits()
				p.until("document.querySelectorAll('#charts .uplot').length >= 3")
				if body := evaluate[string](p, "document.body.innerText"); strings.ContainsAny(body, "\u202e\x01\x02") || !strings.Contains(body, "<") {
					t.Errorf("the page shows %q, want texts without control characters", body)
				}
				if name != "classification" || s != phone {
					return
				}
				if w := evaluate[float64](p, "document.querySelector('.examples td').getBoundingClientRect().width"); w < 300 {
					t.Errorf("the source of an example is %v pixels wide, want a line of its own", w)
				}
			})
		}
	}
}
