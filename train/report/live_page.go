package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/webpage"
	"github.com/heed-go/heed/train"
)

const (
	maxWatchers = 32                     // clients that read events at the same time
	every       = 500 * time.Millisecond // between two looks at the run
	patience    = 10 * time.Second       // for a client that doesn't take an event
	silence     = 15 * time.Second       // the longest time without an event or a comment
)

//go:embed live.js
var live string

var body = template.Must(template.New("live").Parse(`<h1>{{.Title}}</h1>
<p class="muted">{{.About}}</p>
<p id="state" role="status">Waiting for the run.</p>
<noscript><p>This page needs scripts: they draw what the run sends.</p></noscript>
<div id="progress" hidden>
<p id="of-run"></p>
<progress id="run" aria-labelledby="of-run"></progress>
<p id="of-epoch"></p>
<progress id="epoch" aria-labelledby="of-epoch"></progress>
<p id="best"></p>
<p><label><input type="checkbox" id="log"> logarithmic loss</label></p>
</div>
<div class="charts" id="charts"></div>
`))

const bodyStyle = `#state { font-weight: 600; }
#progress p { margin: 0.5rem 0 0; }
progress { width: min(40rem, 100%); }
#charts { margin-top: 1.5rem; }
`

// Handler returns a handler that serves a page with the run's curves at /, and at /events the server-sent events that
// the page reads. No request can change anything. The title and the line about the run may be any text. It is an error
// if the page can't be made.
//
// A client gets the state of the run at once, and again each half second in which the state has changed. There is no
// queue: a slow client gets fewer states, and training waits for no client.
func (l *Live) Handler(title, about string) (http.Handler, error) {
	var content strings.Builder
	about, title = text.Escape(about), text.Escape(title)
	if err := body.Execute(&content, struct{ Title, About string }{title, about}); err != nil {
		return nil, err
	}
	whole, err := webpage.Page{
		Title: title, Body: template.HTML(content.String()), Style: bodyStyle, Charts: true, Scripts: []string{live}, Live: true,
	}.Handler()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", whole)
	mux.HandleFunc("GET /events", l.events)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		for name, value := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			w.Header().Set(name, value)
		}
		mux.ServeHTTP(w, q)
	}), nil
}

// events sends the run's states until it or the client has ended.
func (l *Live) events(w http.ResponseWriter, q *http.Request) {
	if l.watchers.Add(1) > maxWatchers {
		l.watchers.Add(-1)
		http.Error(w, fmt.Sprintf("%d clients read the events of this run, which is all there may be", maxWatchers), http.StatusServiceUnavailable)
		return
	}
	defer l.watchers.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	if q.Method == http.MethodHead {
		return
	}
	client := http.NewResponseController(w)
	var failed error
	send := func(text string) {
		if failed == nil {
			failed = client.SetWriteDeadline(time.Now().Add(patience))
		}
		if failed == nil {
			_, failed = fmt.Fprint(w, text, "\n\n")
		}
		if failed == nil {
			failed = client.Flush()
		}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var seen state
	for said := time.Now(); failed == nil; {
		now := l.state()
		if now.checked != seen.checked {
			send(event("checks", now.checks()))
		}
		if now.version != seen.version {
			send(event("now", now))
			said = time.Now()
		} else if time.Since(said) > silence {
			send(":")
			said = time.Now()
		}
		if seen = now; now.Ended != "" {
			return
		}
		select {
		case <-tick.C:
		case <-l.ended:
		case <-q.Context().Done():
			return
		}
	}
}

// event returns a server-sent event without the empty line at its end.
func event(name string, v any) string {
	data, err := json.Marshal(v)
	if err != nil { // events are numbers and texts
		panic(err)
	}
	return "event: " + name + "\ndata: " + string(data)
}

// A state says how far a run has come. Clients get it as an event.
type state struct {
	Run       int64   `json:"run"`       // differs between runs
	Epoch     int     `json:"epoch"`     // the current one, from 0
	Step      int     `json:"step"`      // the number of its steps that are done
	Steps     int     `json:"steps"`     // of an epoch
	Epochs    int     `json:"epochs"`    // 0 for no limit
	Rate      float64 `json:"rate"`      // the last steps per second; 0 if it isn't known yet
	EpochLeft float64 `json:"epochLeft"` // seconds; below 0 if it isn't known
	RunLeft   float64 `json:"runLeft"`   // at most, with checks
	Seconds   float64 `json:"seconds"`   // since the run began
	Curve     columns `json:"curve"`
	Ended     string  `json:"ended"` // why it ended; empty before

	loss             float64 // the mean of the last steps
	version, checked int
	history          []train.Check
	best             int // in history; -1 for none
}

// columns are the points of a curve. X and RateX have the numbers of their last steps. The rate, in steps per second,
// has fewer points if steps are short.
type columns struct {
	X     column `json:"x"`
	Loss  column `json:"loss"`
	RateX column `json:"rateX"`
	Rate  column `json:"rate"`
}

// A column is a list of numbers. In JSON they have five digits, and numbers that aren't finite are null.
type column []float64

func (c column) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, x := range c {
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case math.IsNaN(x) || math.IsInf(x, 0):
			b = append(b, "null"...)
		case x == math.Trunc(x):
			b = strconv.AppendFloat(b, x, 'g', -1, 64)
		default:
			b = strconv.AppendFloat(b, x, 'g', 5, 64)
		}
	}
	return append(b, ']'), nil
}

// state returns the run's state.
func (l *Live) state() state {
	l.mu.Lock()
	s := state{
		Run: l.began.UnixNano(), Steps: l.perEpoch, Epochs: l.config.MaxEpochs, Rate: l.recent.rate(), EpochLeft: -1, RunLeft: l.left(),
		Seconds: l.now().Sub(l.began).Seconds(), Ended: l.because,
		version: l.version, checked: l.checked, history: l.history, best: l.best,
	}
	if l.taken > 0 {
		s.Epoch = (l.taken - 1) / l.perEpoch
		s.Step = l.taken - s.Epoch*l.perEpoch
	}
	if l.recent.n > 0 {
		s.loss = l.recent.mean()
	}
	if s.Rate > 0 {
		s.EpochLeft = float64(s.Steps-s.Step) / s.Rate
	}
	points := slices.Clone(l.curve.whole())
	l.mu.Unlock()
	c := &s.Curve
	var timed sums
	for _, p := range points {
		c.X, c.Loss = append(c.X, float64(p.x)), append(c.Loss, p.mean())
		if timed.add(p.sums, 1); timed.seconds >= 1 {
			c.RateX, c.Rate = append(c.RateX, float64(p.x)), append(c.Rate, timed.rate())
			timed = sums{}
		}
	}
	return s
}

// checks returns the event that tells clients of the checks: up to maxPoints of them and two more, and the index of the
// best one, or -1.
func (s state) checks() any {
	var some []train.Check
	best, each := -1, (len(s.history)+maxPoints-1)/maxPoints
	for i, check := range s.history {
		if i == s.best {
			best = len(some)
		}
		if i == s.best || i == len(s.history)-1 || i%each == 0 {
			some = append(some, check)
		}
	}
	values := map[string]column{} // by their names in the history
	for i, check := range some {
		set := func(name string, x float64) {
			if values[name] == nil {
				values[name] = slices.Repeat(column{math.NaN()}, len(some))
			}
			values[name][i] = x
		}
		set("epoch", float64(check.Epoch))
		set("step", float64(check.Step))
		set("train_loss", check.TrainLoss)
		if check.Validated {
			set("val_loss", check.ValLoss)
		}
		if check.LearningRate != 0 || check.GradientNorm != 0 {
			set("learning_rate", check.LearningRate)
			set("gradient_norm", check.GradientNorm)
		}
		for name, x := range check.Metrics {
			set(name, x)
		}
	}
	return map[string]any{"values": values, "best": best}
}
