package browser

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/runfolder"
)

var served = regexp.MustCompile(`http://[0-9.:]+/`)

// serving starts heed. It returns the address that heed prints, and a function that ends heed. Otherwise heed ends with
// the test.
func serving(t *testing.T, args ...string) (address string, end func()) {
	t.Helper()
	cmd := exec.Command(heed, args...)
	cmd.Dir = folder
	reader, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	ended, found := make(chan bool), make(chan string, 1)
	end = func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
	}
	t.Cleanup(end)
	var said strings.Builder
	go func() {
		defer close(ended)
		defer cmd.Wait()
		for lines := bufio.NewScanner(reader); lines.Scan(); fmt.Fprintln(&said, lines.Text()) {
			if address := served.FindString(lines.Text()); address != "" && len(found) == 0 {
				found <- address
			}
		}
	}()
	select {
	case address = <-found:
	case <-ended:
		t.Fatalf("heed %q printed no address:\n%s", args, said.String())
	}
	return address, end
}

// TestWatch checks that the live page of a run shows new steps, and that it shows when the run has ended.
func TestWatch(t *testing.T) {
	dir := filepath.Join(folder, `<img src=x onerror=window.hacked=1>"'&amp;`+"\u202e\x01")
	address, end := serving(t, "train", "--watch", "--task=reverse", "--out="+dir, "--dim=16", "--heads=2", "--batch-size=8", "--steps-per-epoch=10",
		"--validation=20", "--patience=0", "--max-epochs=1000000")
	compared := trained(t, "--task=dates", "--layers=1", "--max-epochs=3")
	var pages []*tab
	for _, s := range []screen{desktop, phone} {
		p := open(t, address, s)
		p.until("document.querySelector('#state').textContent === 'Running'")
		p.until("document.querySelectorAll('.uplot').length >= 4")
		const taken = "document.querySelector('#run').value"
		before := evaluate[float64](p, taken)
		p.until(taken + " > 20")
		p.until(taken + " > " + evaluate[string](p, "String("+taken+")"))
		if after := evaluate[float64](p, taken); after <= before {
			t.Errorf("the page shows step %v and later step %v, want a larger one", before, after)
		}
		p.until("/^Best so far: epoch/.test(document.querySelector('#best').textContent)")
		if about := evaluate[string](p, "document.body.innerText"); strings.ContainsAny(about, "\u202e\x01") || !strings.Contains(about, "<img src=x") {
			t.Errorf("the page shows %q, want the folder's name as text", about)
		}
		report := open(t, "file://"+filepath.Join(compared, runfolder.ReportFile), s)
		report.until("document.querySelector('.uplot')")
		live, after := p.colours(), report.colours()
		for _, curve := range []string{"training", "validation"} {
			if live[curve] == "" || live[curve] != after[curve] {
				t.Errorf("the curve %s has the colour %s, in the report %s", curve, live[curve], after[curve])
			}
		}
		p.click("document.querySelector('#log')")
		before = evaluate[float64](p, taken)
		p.until(fmt.Sprintf("%s > %v", taken, before+20)) // more than an epoch
		if !evaluate[bool](p, "document.querySelector('#log').checked") {
			t.Error("after the next check, the axis is no longer as chosen")
		}
		p.fits()
		pages = append(pages, p)
	}
	end()
	for _, p := range pages {
		p.until("/^Ended: /.test(document.querySelector('#state').textContent)")
		p.fits()
	}
}
