package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/webpage"
	"github.com/heed-go/heed/train"
)

const (
	maxWatchers = 32                     // maximum number of clients that read events at the same time
	every       = 500 * time.Millisecond // interval between checks for a new state
	patience    = 10 * time.Second       // timeout for sending an event to a client
	silence     = 15 * time.Second       // maximum time without an event or a comment
)

//go:embed live.js
var live string

var body = template.Must(template.New("live").Parse(`<h1>{{.Title}}</h1>
<p class="muted">{{.About}}</p>
<p id="state" role="status">Waiting for the run.</p>
<noscript><p>This page needs JavaScript to draw the run.</p></noscript>
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

// Handler returns a handler that serves two paths: / is a page with the run's curves, and /events are the server-sent
// events that the page reads. No request changes the run. The arguments title and about may be any text. Handler
// returns an error if it can't make the page.
//
// A client first gets the current state of the run. It then gets the state every half second, if the state has changed.
// There is no queue: a slow client skips states, and training doesn't wait for clients.
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
		webpage.IgnoreBody(w, q)
		mux.ServeHTTP(w, q)
	}), nil
}

// watch adds a client that reads events. If there are too many, the oldest client's stream ends, so that clients that
// don't read can't keep others out. A browser whose stream ends connects again.
func (l *Live) watch(client *http.ResponseController) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.watchers) == maxWatchers {
		l.watchers[0].SetWriteDeadline(time.Now()) // ends a write that waits for the client
		l.watchers = slices.Delete(l.watchers, 0, 1)
	}
	l.watchers = append(l.watchers, client)
}

// watches reports whether the client may go on reading.
func (l *Live) watches(client *http.ResponseController) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.watchers, client)
}

// unwatch removes the client.
func (l *Live) unwatch(client *http.ResponseController) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = slices.DeleteFunc(l.watchers, func(c *http.ResponseController) bool { return c == client })
}

// events sends the states of the run until the run ends, the client leaves or newer clients take its place.
func (l *Live) events(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if q.Method == http.MethodHead {
		return
	}
	client := http.NewResponseController(w)
	l.watch(client)
	defer l.unwatch(client)
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
	for sentAt := time.Now(); failed == nil && l.watches(client); {
		now := l.state()
		if now.checked != seen.checked {
			send(event("checks", now.checks()))
		}
		if now.version != seen.version {
			send(event("now", now))
			sentAt = time.Now()
		} else if time.Since(sentAt) > silence {
			send(":")
			sentAt = time.Now()
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

// event returns a server-sent event, without the empty line that ends it.
func event(name string, v any) string {
	data, err := json.Marshal(v)
	if err != nil { // impossible, because events have only numbers and texts
		panic(err)
	}
	return "event: " + name + "\ndata: " + string(data)
}

// A state describes the progress of a run. Clients get it as an event.
type state struct {
	Run       int64   `json:"run"`       // identifies the run
	Epoch     int     `json:"epoch"`     // current epoch, from 0
	Step      int     `json:"step"`      // number of steps done in this epoch
	Steps     int     `json:"steps"`     // steps per epoch
	Epochs    int     `json:"epochs"`    // maximum number of epochs; 0 if there is none
	Rate      float64 `json:"rate"`      // recent steps per second; 0 if unknown
	EpochLeft float64 `json:"epochLeft"` // seconds left in this epoch; below 0 if unknown
	CheckLeft float64 `json:"checkLeft"` // seconds to the next check; 0 if unknown, or if checks are at the ends of epochs
	RunLeft   float64 `json:"runLeft"`   // maximum seconds left in the run, including checks; below 0 if unknown
	Seconds   float64 `json:"seconds"`   // since the start of the run
	Losses    series  `json:"losses"`    // by the numbers of steps
	Rates     series  `json:"rates"`     // steps per second; a point covers at least one second, so there may be fewer than in Losses
	Ended     string  `json:"ended"`     // the reason why the run ended; empty before the end

	loss             float64 // mean loss of recent steps
	version, checked int
	history          []train.Check
	best             int // index in history, or -1 if no check improved
}

// state returns the run's state.
func (l *Live) state() state {
	l.mu.Lock()
	s := state{
		Run: l.began.UnixNano(), Steps: l.perEpoch, Epochs: l.config.MaxEpochs, Rate: l.recent.rate(), EpochLeft: -1, RunLeft: l.left(),
		Seconds: time.Since(l.began).Seconds(), Ended: l.because,
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
		if every := l.config.CheckEvery; every > 0 {
			s.CheckLeft = float64(every-l.taken%every) / s.Rate
		}
	}
	points := slices.Clone(l.curve.whole())
	l.mu.Unlock()
	s.Losses, s.Rates = newSeries("training, by step"), newSeries("steps per second")
	var timed sums
	for _, p := range points {
		s.Losses.add(p.x, p.mean())
		if timed.add(p.sums, 1); timed.seconds >= 1 {
			s.Rates.add(p.x, timed.rate())
			timed = sums{}
		}
	}
	return s
}

// checks returns the data of the event "checks": the values of up to maxPoints+2 checks, the index of the best one, or
// -1, and whether the report of these checks has a logarithmic axis for losses.
func (s state) checks() any {
	var some []train.Check
	best := -1
	for _, i := range thinned(len(s.history), maxPoints, s.best) {
		if i == s.best {
			best = len(some)
		}
		some = append(some, s.history[i])
	}
	values := map[string][]number{} // by their names in the history
	var losses series
	for i, check := range some {
		set := func(name string, x float64) {
			if values[name] == nil {
				values[name] = slices.Repeat([]number{number(math.NaN())}, len(some))
			}
			values[name][i] = number(x)
		}
		set("epoch", float64(check.Epoch))
		set("step", float64(check.Step))
		set("train_loss", check.TrainLoss)
		losses.add(check.Step, check.TrainLoss)
		if check.Validated {
			set("val_loss", check.ValLoss)
			losses.add(check.Step, check.ValLoss)
		}
		if check.LearningRate != 0 || check.GradientNorm != 0 {
			set("learning_rate", check.LearningRate)
			set("gradient_norm", check.GradientNorm)
		}
		for name, x := range check.Metrics {
			set(name, x)
		}
	}
	return map[string]any{"values": values, "best": best, "log": wide([]series{losses})}
}
