package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is the maximum time that a test waits. It is far longer than needed on a busy machine.
const patience = 60 * time.Second

var (
	folder string          // folder for files of all tests
	heed   string          // the command
	chrome context.Context // the browser
	browse = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	var path string
	for _, name := range browse {
		if path, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if path == "" {
		fmt.Println("left out: no test of a page runs without a browser, one of", strings.Join(browse, ", "))
		return 0, nil
	}
	if folder, err = os.MkdirTemp("", "heed-browser-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	heed = filepath.Join(folder, "heed")
	build := exec.Command("go", "build", "-o", heed, "./cmd/heed")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, out)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	chrome, cancel = chromedp.NewContext(allocator)
	defer cancel()
	if err := chromedp.Do(chrome); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return m.Run(), nil
}

// command runs heed and fails the test if heed fails.
func command(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), heed, args...)
	cmd.Dir = folder
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("heed %q: %v\n%s", args, err, stderr.String())
	}
	return string(out)
}

var runs = map[string]string{} // folder of the run with these arguments

// trained returns the folder of a tiny run. Tests with the same arguments share it.
func trained(t *testing.T, args ...string) string {
	t.Helper()
	key := strings.Join(args, "\n")
	if runs[key] == "" {
		dir := filepath.Join(folder, fmt.Sprintf("run-%d", len(runs)))
		command(t, append([]string{"train", "--out=" + dir, "--dim=16", "--heads=2", "--batch-size=8", "--steps-per-epoch=2", "--validation=20", "--patience=0"}, args...)...)
		runs[key] = dir
	}
	return runs[key]
}

// write writes a file in the tests' folder.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// A screen is the size of a window and a colour scheme.
type screen struct {
	name          string
	width, height int64
	colours       string
}

var (
	desktop = screen{"desktop, light", 1400, 1000, "light"}
	phone   = screen{"phone, dark", 360, 740, "dark"}
	screens = []screen{desktop, phone, {"desktop, dark", 1400, 1000, "dark"}, {"phone, light", 360, 740, "light"}}
)

// A tab is an open page. A page must have no errors, show no dialog, and request no other address and nothing that its
// policy forbids. It must not run data as a script: scripts in the tests' data set the variable hacked.
type tab struct {
	*testing.T
	ctx  context.Context
	home string // prefix of the page's own addresses

	mu    sync.Mutex
	wrong []string // see wrongs
}

// open opens a page on a screen and waits until it is loaded. At the end of the test, open fails the test if the page
// has done anything wrong.
func open(t *testing.T, address string, s screen) *tab {
	t.Helper()
	p := load(t, address, s)
	t.Cleanup(func() {
		for _, wrong := range p.wrongs() {
			t.Error("the page did something wrong:", wrong)
		}
	})
	return p
}

// load opens a page without the check at the end of the test.
func load(t *testing.T, address string, s screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chrome)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	p := &tab{T: t, ctx: ctx, home: address}
	if u, err := url.Parse(address); err != nil {
		t.Fatal(err)
	} else if u.Host != "" {
		p.home = u.Scheme + "://" + u.Host + "/"
	}
	p.must(chromedp.Listen(ctx, p.watch))
	p.must(call(p, page.Enable, page.EnableParams{}))
	p.must(call(p, network.Enable, network.EnableParams{}))
	p.must(call(p, log.Enable, cdp.Empty{}))
	p.must(call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: 1, Mobile: s.width < 600}))
	p.must(call(p, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: s.width < 600}))
	p.must(call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.colours}}}))
	p.must(chromedp.Do(ctx, chromedp.Navigate(address)))
	return p
}

// call runs a command of the browser's protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(p.ctx, command, params)
	return err
}

// watch records events that a page must not cause.
func (p *tab) watch(event any) {
	note := func(format string, args ...any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
	}
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, p.home) && !strings.HasPrefix(u, "data:") {
			note("it requests %s", u)
		}
	case *network.EventWebSocketCreated:
		note("it opens a socket to %s", e.URL)
	case *log.EventEntryAdded: // includes requests that the policy forbids
		note("the browser's log has %s: %s", e.Entry.Level, e.Entry.Text)
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			note("the console has %s: %s %s", e.Type, arg.Value, arg.Description)
		}
	case *runtime.EventExceptionThrown:
		note("an exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *page.EventJavascriptDialogOpening:
		note("a dialog says %q", e.Message)
		go chromedp.Call(p.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	}
}

// wrongs returns what the page has done wrong so far.
func (p *tab) wrongs() []string {
	hacked := p.ctx.Err() == nil && evaluate[bool](p, "'hacked' in window")
	p.mu.Lock()
	defer p.mu.Unlock()
	if hacked {
		return append(p.wrong, "it has run data as a script")
	}
	return p.wrong
}

func (p *tab) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](p *tab, expression string) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until an expression is true.
func (p *tab) until(expression string) {
	p.Helper()
	for {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		switch {
		case ok:
			return
		case errors.Is(err, context.DeadlineExceeded):
			p.Fatalf("this expression never became true: %s\nwhat the page did wrong: %q", expression, p.wrongs())
		case err != nil:
			p.Fatalf("%s: %v", expression, err)
		}
		select {
		case <-p.ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// fits checks that the page needs no scrolling to the side, that no number and its unit are on different lines, and that
// no row of charts is half empty.
func (p *tab) fits() {
	p.Helper()
	if broken := evaluate[[]string](p, `(() => {
		const broken = [];
		for (const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); texts.nextNode();) {
			const text = texts.currentNode;
			if (text.parentNode.closest('script, style, pre, textarea, h1, h2, .attention bdi, .examples td:not(.number), #answers')) continue; // may have users' texts
			for (const number of text.data.matchAll(/\d[\d.,:–]*(\s(%|(s|ms|min|h|thousand|million)\b))?/g)) {
				const range = document.createRange();
				range.setStart(text, number.index);
				range.setEnd(text, number.index + number[0].length);
				const lines = new Set([...range.getClientRects()].filter(r => r.width > 0).map(r => Math.round(r.top)));
				if (lines.size > 1) broken.push(number[0]);
			}
		}
		return broken;
	})()`); len(broken) > 0 {
		p.Errorf("these numbers are on two lines: %q", broken)
	}
	if empty := evaluate[float64](p, `(grid => grid?.lastElementChild ? grid.getBoundingClientRect().right - grid.lastElementChild.getBoundingClientRect().right : 0)(
		document.querySelector('.charts'))`); empty > 1 {
		p.Errorf("the last row of charts ends %v pixels before the others", empty)
	}
	if widths := evaluate[[2]float64](p, "[document.documentElement.scrollWidth, innerWidth]"); widths[0] > widths[1] {
		p.Errorf("the page is %v pixels wide, but the screen only %v", widths[0], widths[1])
	}
}

// middle scrolls to an element and returns the position of its middle. The argument element is an expression.
func (p *tab) middle(element string) (x, y float64) {
	p.Helper()
	center := evaluate[[2]float64](p, `(e => {
		e.scrollIntoView({block: 'center'});
		const r = e.getBoundingClientRect();
		return [r.left + r.width / 2, r.top + r.height / 2];
	})(`+element+`)`)
	return center[0], center[1]
}

// point moves the pointer to a position.
func (p *tab) point(x, y float64) {
	p.Helper()
	p.must(chromedp.Do(p.ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y)))
}

// hover moves the pointer to the middle of an element.
func (p *tab) hover(element string) {
	p.Helper()
	p.point(p.middle(element))
}

// click presses the mouse on an element.
func (p *tab) click(element string) {
	p.Helper()
	x, y := p.middle(element)
	p.must(chromedp.Do(p.ctx, chromedp.MouseClickXY(x, y)))
}

// tap touches an element.
func (p *tab) tap(element string) {
	p.Helper()
	x, y := p.middle(element)
	p.must(call(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: x, Y: y}}}))
	p.must(call(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}}))
}

// press presses a key.
func (p *tab) press(key string) {
	p.Helper()
	p.must(chromedp.Do(p.ctx, chromedp.KeyEvent(key)))
}

// TestWrongs checks that the tests notice a page that does something wrong.
func TestWrongs(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"nothing":          {"<script>window.fine = 1</script>", ""},
		"another address":  {"<img src='http://127.0.0.2:1/x'>", "it requests http://127.0.0.2:1/x"},
		"a dialog":         {"<script>setTimeout(() => alert('hello'))</script>", `a dialog says "hello"`},
		"data as a script": {"<img src='data:,' onerror='window.hacked = 1'>", "it has run data as a script"},
		"an exception":     {"<script>none.such</script>", "none is not defined"},
		"the console":      {"<script>console.warn('careful')</script>", "careful"},
		"against a policy": {"<meta http-equiv='Content-Security-Policy' content='script-src \"none\"'><script>1</script>", "Content Security Policy"},
		"a missing file":   {"<img src='/none'>", "404"},
		"a wide page":      {"<p style='width: 2000px'>wide</p>", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					http.NotFound(w, r)
					return
				}
				fmt.Fprint(w, "<!DOCTYPE html><link rel=icon href='data:,'>", test.body)
			}))
			defer server.Close()
			p := load(t, server.URL+"/", desktop)
			noticed := func() bool { return strings.Contains(strings.Join(p.wrongs(), "\n"), test.want) }
			for !noticed() && p.ctx.Err() == nil {
				time.Sleep(20 * time.Millisecond)
			}
			if wrong := p.wrongs(); !noticed() || test.want == "" && len(wrong) > 0 {
				t.Errorf("the page did wrong: %q, want %q", wrong, test.want)
			}
			if wide := evaluate[float64](p, "document.documentElement.scrollWidth - innerWidth"); wide > 0 != strings.Contains(test.body, "wide") {
				t.Errorf("the page is %v pixels too wide, want more than 0 only for the wide page", wide)
			}
		})
	}
}
